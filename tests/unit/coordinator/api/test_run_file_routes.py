import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.kit.coordinators.transactions import change
from tests.kit.file_claims import name_by_claim
from tests.kit.nasty_headers import NASTY_HEADERS
from tests.kit.runs.scanned import keep_data
from yarl import URL

from oku_coordinator.api.file_routes import build_run_file_routes
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.errors import UserError
from oku_core.results.run_api import RunRows
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef

BODY, KEY, AUTHORITY = b"a body", b"a private key", b"a certificate"
AUTHORITY_WITH_KEY = b"-----BEGIN EC PRIVATE KEY-----\n"
DIGESTS = {
    content: hashlib.sha256(content).hexdigest() for content in (BODY, KEY, AUTHORITY, AUTHORITY_WITH_KEY)
}
Client = TestClient[Any, Any]


@web.middleware
async def answer_errors(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer 400 with the message, as the API does."""
    try:
        response: web.StreamResponse = await handler(request)
    except UserError as error:
        return web.Response(status=400, text=str(error))
    return response


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of an API with one run."""
    files = tmp_path / "files"
    data = keep_data(tmp_path, "a,b\n1,x\n2,y\n3,z\n", files)
    for content, digest in DIGESTS.items():
        (files / digest).write_bytes(content)
    name_by_claim(files)
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    body, key, *authorities = (
        FileRef.build(digest, len(content), "f") for content, digest in DIGESTS.items()
    )
    change(ledger, create_run, "r1", Spec(requests=3, data=data, body=str(body), cert=str(key)), 1.0)
    for number, authority in enumerate(authorities, 2):
        change(ledger, create_run, f"r{number}", Spec(cacert=str(authority)), 1.0)
    api = web.Application(middlewares=[answer_errors])
    api.add_routes(build_run_file_routes(ledger, FileStore(files)))
    async with TestClient(TestServer(api)) as client:
        yield client
    ledger.close()


async def test_rows_are_given_by_their_indices(client: Client) -> None:
    """Each with the names of its columns."""
    response = await client.get("/api/runs/r1/rows?start=1&stop=3")
    rows = msgspec.json.decode(await response.read(), type=RunRows)
    assert rows == RunRows(run="r1", start=1, rows=[{"a": "2", "b": "y"}, {"a": "3", "b": "z"}])


async def test_a_body_is_given_and_a_private_key_is_not(client: Client) -> None:
    """Whoever may submit runs need not see the keys of others; a file of another run is not here."""
    response = await client.get(f"/api/runs/r1/files/{DIGESTS[BODY]}")
    assert (response.status, await response.read()) == (200, BODY)
    refused = await client.get(f"/api/runs/r1/files/{DIGESTS[KEY]}")
    assert (refused.status, "is a private key" in await refused.text()) == (400, True)
    unknown = await client.get(f"/api/runs/r1/files/{'0' * 64}")
    assert (unknown.status, await unknown.text()) == (400, f"run r1 has no file {'0' * 64}")


async def test_an_authority_is_given_unless_it_has_a_key_beside_it(client: Client) -> None:
    """As in a file that was made for a test, and named as both."""
    given = await client.get(f"/api/runs/r2/files/{DIGESTS[AUTHORITY]}")
    assert (given.status, await given.read()) == (200, AUTHORITY)
    refused = await client.get(f"/api/runs/r3/files/{DIGESTS[AUTHORITY_WITH_KEY]}")
    assert (refused.status, "has a private key" in await refused.text()) == (400, True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("rows", "start: '' is not an index"),
        ("rows?start=-1&stop=2", "start: -1 is not an index"),
        ("rows?start=1&stop=4", "start 1 and stop 4 are not a range of the 3 indices of run r1"),
        ("files/..%2Fledger.sqlite3", "is not a SHA-256 in hexadecimal"),
    ],
)
async def test_what_is_asked_wrongly_is_one_line(client: Client, path: str, said: str) -> None:
    """It names what is wrong."""
    response = await client.get(f"/api/runs/r1/{path}")
    assert response.status == 400
    assert said in await response.text()


async def test_whatever_stands_in_a_header_or_a_url_the_caller_is_to_blame(client: Client) -> None:
    """It is never an error of Oku, and the connection stays."""
    wrong = []
    place = f"/api/runs/r1/files/{DIGESTS[BODY]}"
    for name, value in NASTY_HEADERS:
        range_of = {"Range": "bytes=0-1"} if name == "If-Range" else {}
        response = await client.get(place, headers=range_of | {name: value})
        if response.status >= 500:
            wrong.append((name, value[:60], response.status))
    for text in ("", "-1", "1_0", "\u0663", "9" * 17, "9" * 5000, "nan", "%FF"):
        for query in (f"start={text}&stop=1", f"start=0&stop={text}"):
            response = await client.get(URL(f"/api/runs/r1/rows?{query}", encoded=True))
            if response.status != 400:
                wrong.append((query[:40], "", response.status))
    assert not wrong

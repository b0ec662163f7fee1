from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from tests.kit.coordinators.refusal_metrics import RefusalMetrics
from tests.kit.file_claims import build_claim
from tests.kit.nasty_headers import NASTY_HEADERS

from oku_coordinator.api.file_routes import build_download_api
from oku_coordinator.files.file_store import FileStore
from oku_core.messaging.credentials import TICKET_SCHEME, Credential, CredentialFault, build_ticket
from oku_core.messaging.signing import Signer

CONTENT = b"what is in a file"
CLAIM = build_claim(CONTENT)
DIGEST = CLAIM.digest
SIGNER = Signer(b"a key for tests")
Client = TestClient[Any, Any]


@pytest.fixture
def metrics() -> RefusalMetrics:
    """Nothing was refused yet."""
    return RefusalMetrics()


@pytest.fixture
async def client(tmp_path: Path, metrics: RefusalMetrics) -> AsyncIterator[Client]:
    """A client of a port with one file."""
    store = FileStore(tmp_path / "files")
    store.admit(CLAIM, len(CONTENT))
    store.append(CLAIM, CONTENT)
    store.complete(CLAIM)
    api = build_download_api(store, SIGNER, lambda: 1000.0, metrics)
    async with TestClient(TestServer(api)) as client:
        yield client


def bear(digest: str = DIGEST, now: float = 1000.0) -> dict[str, str]:
    """The header with a ticket."""
    return {"Authorization": f"{TICKET_SCHEME} {build_ticket(SIGNER, digest, now)}"}


async def test_a_ticket_gets_its_file(client: Client) -> None:
    """All of it, or what is missing of it."""
    response = await client.get(f"/files/{DIGEST}", headers=bear())
    assert (response.status, await response.read()) == (200, CONTENT)
    response = await client.get(f"/files/{DIGEST}", headers=bear() | {"Range": "bytes=5-"})
    assert (response.status, await response.read()) == (206, CONTENT[5:])


async def test_without_it_there_is_none(
    client: Client, metrics: RefusalMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    """No ticket, that of another file, an expired one, something else: each is counted, and has its line."""
    cases: tuple[tuple[str, dict[str, str], CredentialFault], ...] = (
        (DIGEST, {}, CredentialFault.MISSING),
        (DIGEST, {"Authorization": TICKET_SCHEME}, CredentialFault.MISSING),
        (DIGEST, {"Authorization": "Bearer token"}, CredentialFault.MALFORMED),
        (DIGEST, {"Authorization": f"{TICKET_SCHEME} token"}, CredentialFault.MALFORMED),
        (DIGEST, bear("0" * 64), CredentialFault.WRONG),
        ("..%2Fledger.sqlite3", bear(), CredentialFault.WRONG),
        (DIGEST, bear(now=-2700.0), CredentialFault.EXPIRED),
    )
    for digest, headers, _ in cases:
        assert (await client.get(f"/files/{digest}", headers=headers)).status == 403
    assert metrics.refusals == [(Credential.TICKET, refusal) for *_, refusal in cases]
    assert caplog.messages == [
        f"a call from 127.0.0.1 is refused: its ticket is {refusal} (GET /files/{{digest}})"
        for refusal in CredentialFault
    ]


async def test_a_file_that_is_not_there_is_said_to_be_missing(client: Client) -> None:
    """To whoever has a ticket for it, and to nobody else; and no path leads anywhere."""
    other = "0" * 64
    assert (await client.get(f"/files/{other}", headers=bear(other))).status == 404
    assert (await client.get("/files/..%2Fledger.sqlite3", headers=bear())).status == 403
    assert (await client.get("/", headers=bear())).status == 404
    assert (await client.post(f"/files/{DIGEST}", headers=bear())).status == 405


async def test_whatever_stands_in_a_header_the_caller_is_to_blame(client: Client) -> None:
    """It is never an error of Oku, and the connection stays."""
    wrong = []
    for name, value in NASTY_HEADERS:
        range_of = {"Range": "bytes=0-1"} if name == "If-Range" else {}
        response = await client.get(f"/files/{DIGEST}", headers=bear() | range_of | {name: value})
        if response.status >= 500:
            wrong.append((name, value[:60], response.status))
    assert not wrong

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from tests.kit.file_claims import build_claim

from oku_coordinator.api.file_routes import MOST_PIECE_BYTES, build_upload_routes
from oku_coordinator.api.routes import build_api
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.settings import FileLimits
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.spec.values.file_reference import PROOF_HEADER

CONTENT = b"what is in a file"
CLAIM = build_claim(CONTENT)
DIGEST = CLAIM.digest
PROOF = {PROOF_HEADER: CLAIM.proof}
PLACE = f"/api/files/{DIGEST}"
Client = TestClient[Any, Any]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client that bears the token, and the proof of the file."""
    store = FileStore(tmp_path / "files", FileLimits(most_file_bytes=100))
    api = build_api(None, Metrics(), "token", Troubles())  # type: ignore[arg-type]  # no other call is made
    api.add_routes(build_upload_routes(store))
    async with TestClient(TestServer(api), headers=PROOF | {"Authorization": "Bearer token"}) as client:
        yield client


async def call(client: Client, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """The status and the JSON that a call answers."""
    response = await client.request(method, path, **options)
    return response.status, await response.json()


async def test_a_file_comes_in_pieces(client: Client) -> None:
    """Each answer says what is there; a piece that does not follow is refused."""
    assert await call(client, "GET", PLACE) == (
        200,
        {"digest": DIGEST, "received": 0, "is_complete": False},
    )
    size = len(CONTENT)
    status, stored = await call(client, "PUT", f"{PLACE}?size={size}&offset=0", data=CONTENT[:5])
    assert (status, stored["received"]) == (200, 5)
    status, error = await call(client, "PUT", f"{PLACE}?size={size}&offset=9", data=CONTENT[9:])
    assert (status, error) == (409, {"error": "5 bytes of this file are here: go on with the next one"})
    status, stored = await call(client, "PUT", f"{PLACE}?size={size}&offset=5", data=CONTENT[5:])
    assert (status, stored["is_complete"]) == (200, True)
    assert (await call(client, "GET", PLACE))[1]["is_complete"]


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/api/files/abc?size=1&offset=0", 400, "abc is not a SHA-256 in hexadecimal"),
        (f"{PLACE}?offset=0", 400, "size: '' is not a number of bytes"),
        (f"{PLACE}?size=1&offset=-1", 400, "offset: -1 is not a number of bytes"),
        (f"{PLACE}?size=101&offset=0", 413, "the file has 101 bytes, and at most 100 are allowed"),
        (f"{PLACE}?size=1&offset=0", 422, "what was uploaded does not have the digest"),
    ],
)
async def test_what_is_wrong_is_said(client: Client, path: str, status: int, error: str) -> None:
    """In one line, and nothing is kept."""
    given, document = await call(client, "PUT", path, data=b"x")
    assert given == status
    assert error in document["error"]


async def test_a_piece_has_a_largest_size(client: Client) -> None:
    """A larger file comes in several; so no call takes long."""
    too_much = io.BytesIO(b"x" * (MOST_PIECE_BYTES + 1))
    status, _ = await call(client, "PUT", f"{PLACE}?size=50&offset=0", data=too_much)
    assert status == 413


async def test_nobody_uploads_without_the_token(client: Client) -> None:
    """Nor hears what is there."""
    for method in ("GET", "PUT"):
        path = f"{PLACE}?size=1&offset=0"
        assert (await call(client, method, path, headers={"Authorization": "Bearer x"}))[0] == 401


async def test_a_caller_without_the_proof_hears_the_same_of_every_file(client: Client) -> None:
    """Whether it is here, in part or not at all."""
    size, guess = len(CONTENT), {PROOF_HEADER: "0" * 64}
    absent = {"digest": DIGEST, "received": 0, "is_complete": False}
    for piece, offset in ((CONTENT[:5], 0), (CONTENT[5:], 5)):
        assert await call(client, "GET", PLACE, headers=guess) == (200, absent)
        await call(client, "PUT", f"{PLACE}?size={size}&offset={offset}", data=piece)
    assert await call(client, "GET", PLACE, headers=guess) == (200, absent)
    status, stored = await call(client, "PUT", f"{PLACE}?size={size}&offset=0", data=b"x", headers=guess)
    assert (status, stored) == (200, absent | {"received": 1})
    assert (await call(client, "GET", PLACE))[1]["is_complete"]


async def test_a_call_without_a_proof_is_one_line(client: Client) -> None:
    """And so is one with something else."""
    for value, said in (
        ("", "is not an HMAC-SHA-256 in hexadecimal"),
        ("x" * 64, "is not an HMAC-SHA-256 in hexadecimal"),
        (DIGEST.upper(), "is not an HMAC-SHA-256 in hexadecimal"),
    ):
        status, answer = await call(client, "GET", PLACE, headers={PROOF_HEADER: value})
        assert (status, said in answer["error"]) == (400, True)
    client.session.headers.popall(PROOF_HEADER)
    status, answer = await call(client, "GET", PLACE)
    assert (status, answer["error"].startswith(f"the header {PROOF_HEADER} is missing")) == (400, True)

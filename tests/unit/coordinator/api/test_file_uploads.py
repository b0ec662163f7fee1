import hashlib
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from oku_coordinator.api.file_uploads import MOST_PIECE_BYTES, build_upload_routes
from oku_coordinator.api.routes import build_api
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.settings import FileLimits
from oku_coordinator.telemetry.metrics import Metrics

CONTENT = b"what is in a file"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
PLACE = f"/api/files/{DIGEST}"
Client = TestClient[Any, Any]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client that bears the token."""
    store = FileStore(tmp_path / "files", FileLimits(most_file_bytes=100))
    api = build_api(None, Metrics(), "token", lambda: "")  # type: ignore[arg-type]  # no other call is made
    api.add_routes(build_upload_routes(store))
    async with TestClient(TestServer(api), headers={"Authorization": "Bearer token"}) as client:
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

from types import SimpleNamespace
from typing import Any

import pytest

from oku_workers.engines.aiohttp.body import LongBody
from oku_workers.engines.defaults import PIECE_BYTES

CONTENT = bytes(range(256)) * 1000


@pytest.mark.parametrize("length", [None, 0, 1, PIECE_BYTES, PIECE_BYTES + 1, len(CONTENT)])
async def test_it_is_sent_in_pieces_that_are_no_copies(length: int | None) -> None:
    """As much of it as a `Content-Length` says."""
    pieces: list[Any] = []

    async def write(piece: memoryview) -> None:
        pieces.append(piece)

    writer: Any = SimpleNamespace(write=write)
    body = LongBody(CONTENT)
    await (body.write(writer) if length is None else body.write_with_length(writer, length))
    assert b"".join(pieces) == CONTENT[:length]
    assert all(piece.obj is CONTENT and len(piece) <= PIECE_BYTES for piece in pieces)
    assert body.size == len(CONTENT)
    assert body.decode("latin-1").encode("latin-1") == CONTENT

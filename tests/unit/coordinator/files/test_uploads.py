import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kit.file_claims import build_claim

from oku_coordinator.files.file_store import FileStore
from oku_coordinator.files.uploads import OffsetError, Uploads

CONTENT = b"0123456789"
CLAIM = build_claim(CONTENT)


async def split(content: bytes) -> AsyncIterator[bytes]:
    """A piece as it comes: in parts."""
    for begin in range(0, len(content), 3):
        await asyncio.sleep(0)
        yield content[begin : begin + 3]


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    """Uploads into an empty store."""
    return Uploads(FileStore(tmp_path))


async def test_an_empty_file_is_one(uploads: Uploads) -> None:
    """It is whole with its first piece, in which nothing is."""
    empty = build_claim(b"")
    assert (await uploads.receive(empty, 0, 0, split(b""))).is_complete


async def test_two_who_send_the_same_file_do_not_mix_it_up(uploads: Uploads) -> None:
    """The second one is told what is there when the first one is done."""
    first, second = await asyncio.gather(
        uploads.receive(CLAIM, 10, 0, split(CONTENT[:6])),
        uploads.receive(CLAIM, 10, 0, split(CONTENT[:4])),
        return_exceptions=True,
    )
    assert not isinstance(first, BaseException)
    assert isinstance(second, OffsetError)
    assert (await uploads.receive(CLAIM, 10, 6, split(CONTENT[6:]))).is_complete


async def test_whoever_has_waited_keeps_a_third_from_beginning(uploads: Uploads) -> None:
    """Also when nothing has come of the one before, so that there is a piece to send for both."""
    is_first_over, is_second_sent = asyncio.Event(), asyncio.Event()

    async def send_nothing() -> AsyncIterator[bytes]:
        await is_first_over.wait()
        raise ConnectionError
        yield b""

    async def send_slowly() -> AsyncIterator[bytes]:
        yield CONTENT[:3]
        await is_second_sent.wait()
        yield CONTENT[3:]

    first = asyncio.create_task(uploads.receive(CLAIM, 10, 0, send_nothing()))
    second = asyncio.create_task(uploads.receive(CLAIM, 10, 0, send_slowly()))
    await asyncio.sleep(0)
    is_first_over.set()
    with pytest.raises(ConnectionError):
        await first
    third = asyncio.create_task(uploads.receive(CLAIM, 10, 0, split(CONTENT)))
    await asyncio.sleep(0)
    is_second_sent.set()
    assert (await second).is_complete
    assert (await third).is_complete

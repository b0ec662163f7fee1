import asyncio
import hashlib
import threading
from pathlib import Path

import pytest

from oku_core.process.supervision import Supervisor
from oku_core.spec.values.file_reference import FileRef
from oku_workers.files.file_cache import FileCache, PartialFile
from oku_workers.files.file_fetcher import FileFetcher

FILE = FileRef.build("0" * 64, 5, "body")
CONTENT = b"what is in it"
WHOLE = FileRef.build(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "body")


class SlowCache(FileCache):
    """Takes as long to begin as it is told, as with what there is already of a large file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 1000)
        self.begins, self.may_go_on = threading.Event(), threading.Event()

    def open_partial(self, file: FileRef) -> PartialFile | None:
        """Begin to fetch a file, late."""
        self.begins.set()
        assert self.may_go_on.wait(2)
        return super().open_partial(file)


async def test_a_fetch_that_is_given_up_as_it_begins_leaves_the_file_to_others(tmp_path: Path) -> None:
    """Its lock does not stay until the worker ends."""
    slow, other = SlowCache(tmp_path / "cache"), FileCache(tmp_path / "cache", 1000)
    fetching = asyncio.ensure_future(FileFetcher(slow, Supervisor()).fetch(FILE))
    assert await asyncio.to_thread(slow.begins.wait, 2)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    slow.may_go_on.set()
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
    partial = other.open_partial(FILE)
    assert partial is not None
    partial.close()


class CleanedCache(FileCache):
    """Somebody removes what is fetched, the first time."""

    begins = 0

    def open_partial(self, file: FileRef) -> PartialFile | None:
        """Begin to fetch a file, of which all is there."""
        self.begins += 1
        partial = super().open_partial(file)
        assert partial is not None
        partial.restart()
        partial.append(CONTENT)
        if self.begins == 1:
            [part] = self._folder.iterdir()
            part.unlink()
        return partial


async def test_what_is_removed_while_it_comes_is_fetched_again(tmp_path: Path) -> None:
    """After a pause, as with all that may pass."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    cache = CleanedCache(tmp_path / "cache", 1000)
    held = await FileFetcher(cache, Supervisor(), sleep).fetch(WHOLE)
    assert (held.path.read_bytes(), cache.begins, len(pauses)) == (CONTENT, 2, 1)
    held.release()

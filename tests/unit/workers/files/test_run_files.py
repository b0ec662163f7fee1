import asyncio
import hashlib
import shutil
from pathlib import Path

import pytest

from oku_core.spec.files import SpecFileError
from oku_core.spec.values.file_reference import FileRef
from oku_workers.files.file_cache import FileCache, FileError, HeldFile
from oku_workers.files.run_files import RunFiles

FIRST, SECOND = b"first", b"second"


def refer(content: bytes) -> FileRef:
    """The reference of a file with this content."""
    return FileRef.build(hashlib.sha256(content).hexdigest(), len(content), content.decode())


class FakeFetcher:
    """Has files when it is let go on."""

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache
        self.asked: list[str] = []
        self.may_go_on = asyncio.Event()
        self.fault = ""
        self.tickets: dict[str, str] = {}

    async def fetch(self, file: FileRef) -> HeldFile:
        """Have a file, or fail."""
        self.asked.append(file.name)
        await self.may_go_on.wait()
        if self.fault:
            raise FileError(self.fault)
        partial = self._cache.open_partial(file)
        assert partial is not None
        partial.append(file.name.encode())
        return partial.finish()


class World:
    """Files of a worker without a coordinator."""

    def __init__(self, folder: Path, linger_s: float = 60.0) -> None:
        cache = FileCache(folder / "cache", 1000)
        self.fetcher = FakeFetcher(cache)
        self.files = RunFiles(self.fetcher, cache, linger_s)  # type: ignore[arg-type]


async def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    """However many leases ask for it, at once or later."""
    world = World(tmp_path)
    asking = [asyncio.ensure_future(world.files.provide([refer(FIRST)], user)) for user in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(SpecFileError, match="it was not fetched"):
        world.files.path_of(refer(FIRST).digest)
    world.fetcher.may_go_on.set()
    await asyncio.gather(*asking)
    await world.files.provide([refer(FIRST), refer(SECOND)], 4)
    assert world.fetcher.asked == ["first", "second"]
    assert world.files.path_of(refer(FIRST).digest).read_bytes() == FIRST
    await world.files.close()
    assert list((tmp_path / "cache").iterdir()) == []


async def test_a_file_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    """All who asked are told, and the next one makes another try."""
    world = World(tmp_path)
    world.fetcher.may_go_on.set()
    world.fetcher.fault = "the coordinator refuses the ticket"
    asking = [world.files.provide([refer(FIRST)], user) for user in range(2)]
    for error in await asyncio.gather(*asking, return_exceptions=True):
        assert str(error) == "file first cannot be had: the coordinator refuses the ticket"
    world.fetcher.fault = ""
    await world.files.provide([refer(FIRST)], 3)
    assert world.fetcher.asked == ["first", "first"]
    await world.files.close()


async def test_a_file_that_nobody_uses_goes_after_a_while(tmp_path: Path) -> None:
    """As long as a single lease uses it, or another one comes in time, it stays."""
    world = World(tmp_path, linger_s=0.0)
    world.fetcher.may_go_on.set()
    for user in (1, 2):
        await world.files.provide([refer(FIRST)], user)
    path = world.files.path_of(refer(FIRST).digest)
    world.files.release(1)
    await asyncio.sleep(0.01)
    assert path.exists()
    world.files.release(2)
    await world.files.provide([refer(FIRST)], 3)
    await asyncio.sleep(0.01)
    assert path.exists()
    world.files.release(3)
    await asyncio.sleep(0.05)
    assert not path.exists()
    await world.files.close()


async def test_whoever_stops_waiting_stops_nobody_else(tmp_path: Path) -> None:
    """The transfer goes on for the others."""
    world = World(tmp_path)
    first, second = (asyncio.ensure_future(world.files.provide([refer(FIRST)], user)) for user in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    world.files.release(1)
    await asyncio.sleep(0)
    world.fetcher.may_go_on.set()
    await second
    assert world.fetcher.asked == ["first"]
    await world.files.close()


async def test_files_are_prepared_before_a_lease_needs_them(tmp_path: Path) -> None:
    """It is said when they are here; one that cannot be had is dealt with, and tried again for a lease."""
    world = World(tmp_path)
    for _ in range(3):
        world.files.prepare([refer(FIRST)])
        await asyncio.sleep(0)
    assert world.files.settled == []
    world.fetcher.may_go_on.set()
    await world.files.provide([refer(FIRST)], 1)
    assert world.files.settled == [refer(FIRST).digest]
    assert world.fetcher.asked == ["first"]
    world.fetcher.fault = "there is no room"
    world.files.prepare([refer(SECOND)])
    await asyncio.sleep(0.01)
    assert world.files.settled == [refer(SECOND).digest]
    world.fetcher.fault = ""
    await world.files.provide([refer(SECOND)], 1)
    assert world.fetcher.asked == ["first", "second", "second"]
    await world.files.close()
    assert world.files.settled == []


async def test_a_file_that_somebody_has_removed_or_changed_is_fetched_again(tmp_path: Path) -> None:
    """For the next lease, and for the next run that is prepared; who has it open hears of a change."""
    world = World(tmp_path)
    world.fetcher.may_go_on.set()
    file = refer(FIRST)
    await world.files.provide([file], 1)
    path = world.files.path_of(file.digest)
    assert (world.files.are_whole([file]), world.files.are_whole([file, refer(SECOND)])) == (True, False)

    path.unlink()
    assert not world.files.are_whole([file])
    await world.files.provide([file], 2)
    assert (path.read_bytes(), world.files.changes) == (FIRST, 0)

    shutil.rmtree(path.parent)
    world.files.prepare([file])
    assert world.files.settled == []
    await world.files.provide([file], 3)
    assert (path.read_bytes(), world.files.settled) == (FIRST, [file.digest])

    path.write_bytes(SECOND)
    await world.files.provide([file], 4)
    assert (path.read_bytes(), world.files.changes) == (FIRST, 1)
    assert world.fetcher.asked == ["first"] * 4
    await world.files.close()
    assert list(path.parent.iterdir()) == []

import hashlib
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oku_core.spec.values.file_reference import FileRef
from oku_workers.files.file_cache import FileCache, FileError, HeldFile, PartialFile, WrongContentError

if TYPE_CHECKING:
    from collections.abc import Callable

CONTENT = b"what is in a file"


def refer(content: bytes = CONTENT) -> FileRef:
    """The reference of a file with this content."""
    return FileRef.build(hashlib.sha256(content).hexdigest(), len(content), "ca.pem")


def fetch(cache: FileCache, content: bytes = CONTENT) -> HeldFile:
    """Have a file as if it had been fetched."""
    partial = cache.open_partial(refer(content))
    assert partial is not None
    partial.append(content)
    return partial.finish()


def append_all(partial: PartialFile, content: bytes) -> None:
    """Bring a file in, in small parts."""
    for begin in range(0, len(content), 4):
        partial.append(content[begin : begin + 4])
    partial.finish()


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    """An empty cache."""
    return FileCache(tmp_path / "cache", 1000)


def test_a_file_is_there_once_it_is_whole(cache: FileCache, tmp_path: Path) -> None:
    """Until then nobody can hold it; from then on only its owner can read it."""
    assert cache.hold(refer()) is None
    held = fetch(cache)
    assert held.path.read_bytes() == CONTENT
    assert held.path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    other = cache.hold(refer())
    assert other is not None
    held.release()
    assert other.path.exists()
    other.release()
    assert list((tmp_path / "cache").iterdir()) == []


def test_one_worker_at_a_time_fetches_a_file(cache: FileCache, tmp_path: Path) -> None:
    """Others that share the folder wait; what one has left, the next one goes on with."""
    partial = cache.open_partial(refer())
    assert partial is not None
    partial.append(CONTENT[:5])
    other = FileCache(tmp_path / "cache", 1000)
    assert other.open_partial(refer()) is None
    partial.close()
    following = other.open_partial(refer())
    assert following is not None
    assert following.received == 5
    following.append(CONTENT[5:])
    following.finish().release()


@pytest.mark.parametrize("content", [b"what is in a fil3", b"what is in a file and more"])
def test_what_is_not_the_file_is_not_taken_for_it(cache: FileCache, content: bytes) -> None:
    """Neither with another digest nor with more bytes; one begins anew then."""
    partial = cache.open_partial(refer())
    assert partial is not None
    with pytest.raises(WrongContentError):
        append_all(partial, content)
    assert partial.received == 0
    partial.append(CONTENT)
    partial.finish().release()


def test_what_nobody_uses_makes_room(cache: FileCache) -> None:
    """What is used does not, and then there is none."""
    used = fetch(cache, b"u" * 400)
    left = used.path.with_name(refer(b"n" * 400).digest)  # as by a process that was killed
    left.write_bytes(b"n" * 400)
    left.chmod(0o600)
    partial = cache.open_partial(refer(b"x" * 500))
    assert partial is not None
    partial.close()
    assert not left.exists()
    assert used.path.exists()
    with pytest.raises(FileError, match="there is no room: 700 more bytes are needed, 400 are in use"):
        cache.open_partial(refer(b"y" * 700))
    used.release()


def test_a_folder_of_somebody_else_is_not_used(cache: FileCache, tmp_path: Path) -> None:
    """Nor one that others may write."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(FileError, match="others may write this folder"):
        cache.open_partial(refer())


def test_a_full_disk_is_said(cache: FileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before stays."""
    partial = cache.open_partial(refer())
    assert partial is not None
    partial.append(CONTENT[:5])

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", fail)
        with pytest.raises(FileError, match="it cannot be written here: No space left on device"):
            partial.append(CONTENT[5:])
    partial.append(CONTENT[5:])
    partial.finish().release()


def test_what_is_left_can_be_cleared(cache: FileCache, tmp_path: Path) -> None:
    """But for what is used, and for what is not a file of a run."""
    held = fetch(cache)
    partial = cache.open_partial(refer(b"part"))
    assert partial is not None
    partial.close()
    (tmp_path / "cache" / "notes").write_text("mine")
    cache.clear()
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == sorted([refer().digest, "notes"])
    held.release()


def test_what_others_do_to_a_file_is_seen(cache: FileCache, tmp_path: Path) -> None:
    """It was removed, or its folder, or something else is in its place; or somebody has written to it."""

    def remove_folder(path: Path) -> None:
        shutil.rmtree(path.parent)

    def replace(path: Path) -> None:
        path.unlink()
        path.write_bytes(CONTENT)

    def overwrite(path: Path) -> None:
        path.write_bytes(CONTENT[::-1])
        os.utime(path, ns=(1, 1))

    cases: list[tuple[Callable[[Path], object], bool]] = [
        (Path.unlink, False),
        (remove_folder, False),
        (replace, False),
        (lambda path: os.truncate(path, 3), True),
        (overwrite, True),
    ]
    for number, (damage, is_changed) in enumerate(cases):
        held = fetch(cache)
        assert (held.is_whole, held.is_changed) == (True, False)
        damage(held.path)
        assert (held.is_whole, held.is_changed) == (False, is_changed), number
        held.release()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def test_a_damaged_file_is_not_taken_for_whole(cache: FileCache) -> None:
    """Not even by a process that has not fetched it; it makes room for another one, whoever has it open."""
    for damaged in (CONTENT[:-1], CONTENT[::-1], b""):
        held = fetch(cache)
        held.path.write_bytes(damaged)
        assert cache.hold(refer()) is None
        assert not held.path.exists()
        again = fetch(cache)
        held.release()
        assert again.is_whole
        again.release()


@pytest.mark.parametrize("way", ["release", "hold", "clear"])
def test_a_file_that_gets_its_name_is_not_removed_as_the_one_before_it(
    cache: FileCache, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Somebody else may let go of a damaged one, find it, or remove what is unused, at that very moment."""
    damaged = fetch(cache)
    damaged.path.write_bytes(CONTENT[::-1])
    if way == "clear":  # a process that was killed has left it
        damaged.release()
        damaged.path.write_bytes(CONTENT[::-1])
        damaged.path.chmod(0o600)
    partial = cache.open_partial(refer())
    assert partial is not None
    partial.append(CONTENT)
    found: list[HeldFile] = []
    finishing = threading.Thread(target=lambda: found.append(partial.finish()))
    unlink = Path.unlink

    def unlink_late(path: Path, *, missing_ok: bool = False) -> None:
        finishing.start()
        finishing.join(0.02)
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink_late)
        {"release": damaged.release, "hold": lambda: cache.hold(refer()), "clear": cache.clear}[way]()
    finishing.join()
    assert found[0].is_whole
    found[0].release()


def test_a_file_that_is_removed_while_it_comes_can_be_fetched_again(cache: FileCache, tmp_path: Path) -> None:
    """Neither its process, nor another one that has begun anew, takes the wrong file for it."""
    partial = cache.open_partial(refer())
    assert partial is not None
    partial.append(CONTENT)
    [part] = (tmp_path / "cache").iterdir()
    part.unlink()
    with pytest.raises(FileNotFoundError):
        partial.finish()
    part.write_bytes(CONTENT[:4])
    part.chmod(0o600)
    with pytest.raises(FileNotFoundError):
        partial.finish()
    partial.close()
    following = cache.open_partial(refer())
    assert following is not None
    assert following.received == 4
    following.append(CONTENT[4:])
    following.finish().release()

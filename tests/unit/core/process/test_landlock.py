import errno
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import without_landlock

from oku_core.errors import UserError
from oku_core.process import landlock
from oku_core.process.landlock import (
    ALL_RIGHTS,
    READ_AND_EXECUTE,
    Confinement,
    FileRight,
    LandlockScope,
    build_attributes,
    find_known_rights,
    find_version,
    restrict,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446


class Kernel:
    """A kernel with some version of Landlock, which notes what it is asked for.

    Args:
        version: of Landlock.
        error: what it answers instead.
    """

    def __init__(self, version: int, error: int = 0) -> None:
        self.version = version
        self.error = error
        self.attributes = b""
        self.rules: list[int] = []
        self.is_restricted = False

    def call(self, number: int, *arguments: object) -> int:
        """A system call of a program."""
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        match number, arguments:
            case (444, (None, 0, 1)):
                return self.version
            case (444, (bytes() as attributes, int(), 0)):
                self.attributes = attributes
                return os.open("/dev/null", os.O_RDONLY)
            case (445, (int(), 1, bytes() as rule, 0)):
                self.rules.append(struct.unpack("=Qi", rule)[0])
                return 0
            case (446, (int(), 0)):
                self.is_restricted = True
                return 0
        raise AssertionError((number, arguments))


@pytest.fixture
def _has_one_thread(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a host does when it is confined, and the process of the tests may not."""
    monkeypatch.setattr("oku_core.process.landlock._THREADS", tmp_path_factory.mktemp("threads"))


def test_each_version_is_told_what_it_knows() -> None:
    """What a kernel does not know would be refused, and what it is not told stays allowed."""
    scopes = LandlockScope.ABSTRACT_UNIX_SOCKET | LandlockScope.SIGNAL
    words = {
        1: [0x1FFF], 2: [0x3FFF], 3: [0x7FFF], 4: [0x7FFF, 0], 5: [0xFFFF, 0], 6: [0xFFFF, 0, scopes],
        7: [0xFFFF, 0, scopes], 99: [0xFFFF, 0, scopes],
    }  # fmt: skip
    for version, expected in words.items():
        attributes = build_attributes(version)
        assert list(struct.unpack(f"={len(attributes) // 8}Q", attributes)) == expected, version


@pytest.mark.usefixtures("_has_one_thread")
def test_a_rule_names_only_what_a_kernel_knows_and_what_its_path_can_have(tmp_path: Path) -> None:
    """A rule about a file that names a right to a folder would be refused."""
    file = tmp_path / "file"
    file.touch()
    for version in range(1, 10):
        kernel = Kernel(version)
        paths = {tmp_path: ALL_RIGHTS, file: ALL_RIGHTS, Path(sys.prefix): READ_AND_EXECUTE}
        restrict(paths, kernel.call)
        of_a_file = {1: 0b111, 2: 0b111, 3: 0x4007, 4: 0x4007}.get(version, 0xC007)
        assert kernel.rules == [find_known_rights(version), of_a_file, 0b1101], version
        assert kernel.attributes == build_attributes(version)
        assert kernel.is_restricted


@pytest.mark.usefixtures("_has_one_thread")
def test_paths_that_are_not_there_have_no_rule(tmp_path: Path) -> None:
    """A system has some of those that another has."""
    kernel = Kernel(7)
    file = tmp_path / "file"
    file.touch()
    restrict({tmp_path / "gone": READ_AND_EXECUTE, file / "below": FileRight.READ_FILE}, kernel.call)
    assert kernel.rules == []
    assert kernel.is_restricted


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EINVAL])
def test_whatever_the_first_call_fails_by_there_is_no_landlock(error: int) -> None:
    """An old kernel, one that has it switched off, and the filter of a container say different things."""
    kernel = Kernel(0, error)
    assert find_version(kernel.call) == 0
    with pytest.raises(OSError, match="no Landlock"):
        restrict({}, kernel.call)


def test_a_filter_of_system_calls_takes_it_away() -> None:
    """As in a container whose runtime does not know it."""
    code = "from oku_core.process.landlock import find_version; print(find_version())"
    command = [sys.executable, "-c", code]
    without = [sys.executable, without_landlock.__file__, *command]
    assert subprocess.run(without, capture_output=True, text=True, check=True).stdout == "0\n"
    with_it = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(with_it) == find_version()


_RESTRICTED = """
import contextlib, os, sys, threading
from pathlib import Path
from oku.sandbox.process_confinement import give_up_privileges
from oku_core.process.landlock import *

give_up_privileges()
folder, other = map(Path, sys.argv[1:3])
if len(sys.argv) > 3:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
(other / "file").touch()
schedstat = Path(f"/proc/self/task/{os.getpid()}/schedstat")
restrict({folder: ALL_RIGHTS, schedstat: FileRight.READ_FILE})
(folder / "a").mkdir()
(folder / "file").write_text("x")
(folder / "file").rename(folder / "a" / "file")
assert schedstat.read_text()
for attempt in (
    lambda: (other / "file").read_text(),
    lambda: (other / "new").write_text("x"),
    lambda: (other / "file").unlink(),
    lambda: os.truncate(other / "file", 0),
    lambda: os.rename(folder / "a" / "file", other / "stolen"),
    lambda: os.link(other / "file", folder / "link"),
    lambda: list(other.iterdir()),
    lambda: Path("/proc/self/environ").read_text(),
    lambda: os.kill(os.getppid(), 0),
):
    try:
        attempt()
    except OSError:
        continue
    raise AssertionError(attempt)
"""


@pytest.mark.skipif(find_version() < 6, reason="needs Landlock with scopes")
def test_a_process_keeps_what_it_was_left(tmp_path: Path) -> None:
    """In one folder it may do everything, in another nothing, and it reaches no other process."""
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    folders = [str(tmp_path / "own"), str(tmp_path / "other")]
    ended = subprocess.run([sys.executable, "-c", _RESTRICTED, *folders], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    threaded = subprocess.run(
        [sys.executable, "-c", _RESTRICTED, *folders, "thread"], capture_output=True, check=False
    )
    assert b"more than one thread" in threaded.stderr


def test_only_what_is_required_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere a run has a notice."""
    monkeypatch.setattr(landlock, "find_version", lambda: 0)
    Confinement.OFF.check()
    Confinement.ON.check()
    with pytest.raises(UserError, match=r"^--require-confinement: the kernel has no Landlock"):
        Confinement.REQUIRED.check()
    monkeypatch.setattr(landlock, "find_version", lambda: 1)
    Confinement.REQUIRED.check()

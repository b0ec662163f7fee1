"""In a process of its own where it is confined: none of it can be taken back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import without_landlock

from oku.sandbox.file_confinement import TEMPORARY, choose_rights
from oku.sandbox.user_module import describe_exception, format_traceback
from oku_core.process.landlock import ALL_RIGHTS, READ_AND_EXECUTE, FileRight, find_version
from oku_core.spec.spec import Spec, encode_spec
from oku_core.user_code.messages import Start

needs_landlock = pytest.mark.skipif(find_version() == 0, reason="needs Landlock")


def build_start(folder: Path, spec: Spec, **paths: Path) -> Start:
    """What a worker says first."""
    own = {digest: os.fsencode(path) for digest, path in paths.items()}
    return Start(spec=encode_spec(spec), folder=os.fsencode(folder), users=1, is_ahead=False, paths=own)


def test_user_code_may_write_to_its_folder_alone(tmp_path: Path) -> None:
    """And it may read the files of its run, certificates that its spec names, and Python."""
    cert, data = tmp_path / "cert.pem", tmp_path / "cache" / "0"
    cert.touch()
    spec = Spec(cert=str(cert), cacert=str(tmp_path))
    code = tmp_path / "code"
    rights = choose_rights(build_start(code, spec, data=data), code, spec)
    assert [path for path, right in rights.items() if right & FileRight.MAKE_DIR] == [code]
    assert rights[code] == ALL_RIGHTS
    assert rights[data] == rights[cert] == rights[Path(sys.prefix, "lib")] == READ_AND_EXECUTE
    assert tmp_path not in rights  # a folder is no certificate
    assert not {Path.home(), Path("/"), Path("/etc"), Path("/proc"), Path("/proc/self")} & rights.keys()
    assert not [path for path in rights if path.parts[:2] in (("/", "run"), ("/", "var"), ("/", "srv"))]
    assert not rights[Path("/dev/shm")] & FileRight.READ_DIR


def test_folders_that_the_environment_names_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker has chosen it; a path that is relative means another folder by now."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path / 'lib'}:lib:")
    monkeypatch.setattr(sys, "path", ["", "here", str(tmp_path / "packages")])
    rights = choose_rights(build_start(tmp_path / "code", Spec()), tmp_path / "code", Spec())
    for name in ("ca.pem", "lib", "packages"):
        assert rights[tmp_path / name] == READ_AND_EXECUTE
    assert all(path.is_absolute() for path in rights)


def test_a_refusal_is_explained_where_user_code_is_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the reason and below the traceback; elsewhere a file has its own reasons."""
    refused, other = PermissionError(13, "Permission denied", "/etc/passwd"), OSError(5, "no")
    before = [describe_exception(each, tmp_path) for each in (refused, other)]
    assert not any("confined" in text for text in before)
    monkeypatch.setattr("oku.sandbox.file_confinement._confined", {1})
    after = [describe_exception(each, tmp_path) for each in (refused, other)]
    assert after == [f"{before[0]}: user code is confined", before[1]]
    assert "User code is confined to its own files" in format_traceback(refused, tmp_path).splitlines()[-1]
    assert "confined" not in format_traceback(other, tmp_path)


_HOST = """
import os, socket, sys, tempfile
from pathlib import Path
from oku.sandbox.process_confinement import give_up_privileges
from oku.sandbox.file_confinement import prepare_host
from oku_core.process.resources import measure_busy_s
from oku_core.user_code.messages import Start, frame
from oku_core.spec.spec import Spec, encode_spec

give_up_privileges()
folder = Path(sys.argv[1])
ours, theirs = socket.socketpair()
start = Start(
    spec=encode_spec(Spec()), folder=os.fsencode(folder), users=1, is_ahead=False, is_confined=True
)
theirs.sendall(frame(start))
if prepare_host(ours) is None:
    sys.exit(theirs.recv(1000).decode(errors="replace"))
"""
_CONFINED = """
Path("~/own").expanduser().write_text("x")
with tempfile.NamedTemporaryFile() as file:
    assert Path(file.name).is_relative_to(folder)
assert Path("/proc/thread-self/schedstat").read_text()
for path in (folder.parent / "other", Path("/etc/passwd"), Path("/proc/self/environ")):
    try:
        path.read_bytes()
        raise AssertionError(path)
    except PermissionError:
        pass
"""


@needs_landlock
def test_a_host_is_confined_before_it_loads_anything(tmp_path: Path) -> None:
    """It has a home and temporary files of its own, and goes on to measure how long it waits."""
    (tmp_path / "code").mkdir()
    (tmp_path / "other").touch()
    command = [sys.executable, "-c", _HOST + _CONFINED, str(tmp_path / "code")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in (tmp_path / "code").rglob("*")] == [TEMPORARY, "own"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_host_that_cannot_be_confined_loads_nothing(tmp_path: Path) -> None:
    """Its worker, which could, hears why."""
    command = [sys.executable, without_landlock.__file__, sys.executable, "-c", _HOST, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "user code cannot be confined here: the kernel has no Landlock" in ended.stderr

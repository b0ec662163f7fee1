import os
from pathlib import Path

import msgspec
import pytest

from oku_core.errors import UserError
from oku_core.spec.files import (
    EVERYWHERE,
    MOST_BYTES,
    SpecFileError,
    SpecFiles,
    list_files,
    list_public_files,
)
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef

_REFUSED = "files are read only from the folders that --files-dir allows"


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """Create a folder that the operator allows, beside one that is not allowed."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("secret")
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "ca.pem").write_text("certificate")
    return folder


def refuse(files: SpecFiles, path: object) -> str:
    """Return why a file is not read."""
    with pytest.raises(SpecFileError) as caught:
        files.read(str(path))
    return str(caught.value)


def test_a_regular_file_below_an_allowed_folder_is_read(allowed: Path, tmp_path: Path) -> None:
    """It may be at any depth, in any of several folders."""
    (allowed / "deep" / "er").mkdir(parents=True)
    (allowed / "deep" / "er" / "key").write_text("key")
    files = SpecFiles((allowed / "nothing", allowed))
    assert files.read(f"{allowed}/ca.pem") == b"certificate"
    assert files.read(f"{allowed}/deep/er/key") == b"key"
    assert files.read(f"{allowed}/deep/../ca.pem") == b"certificate"
    # A folder that kubernetes mounts is read.
    (allowed / "..2026").mkdir()
    (allowed / "..2026" / "tls.key").write_text("key")
    (allowed / "..data").symlink_to("..2026")
    (allowed / "tls.key").symlink_to("..data/tls.key")
    assert SpecFiles((allowed,)).read(f"{allowed}/tls.key") == b"key"
    # An allowed folder may be a link. A file may be named by the link or by its target.
    (tmp_path / "link").symlink_to(allowed)
    files = SpecFiles((tmp_path / "link",))
    assert files.read(f"{tmp_path}/link/ca.pem") == files.read(f"{allowed}/ca.pem") == b"certificate"


def test_every_path_outside_the_folders_gets_the_same_answer(allowed: Path, tmp_path: Path) -> None:
    """It does not matter whether it exists, is readable or is reached by a detour, or a folder is allowed."""
    (allowed / "link").symlink_to(tmp_path / "other" / "secret")
    (allowed / "folder").symlink_to(tmp_path / "other")
    (allowed / "loose").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    paths = [
        tmp_path / "other" / "secret", tmp_path / "missing", tmp_path / "pipe", tmp_path, "/dev/zero",
        f"{allowed}-not/ca.pem", f"{allowed}/../other/secret", f"{allowed}/link", f"{allowed}/folder/secret",
        f"{allowed}/loose", "ca.pem", "", "/proc/self/fd/0", f"{allowed}/ca.pem\0",
    ]  # fmt: skip
    assert {refuse(SpecFiles((allowed,)), path) for path in paths} == {_REFUSED}
    assert refuse(SpecFiles(), allowed / "ca.pem") == _REFUSED


def test_a_fault_inside_the_folders_is_told_precisely(allowed: Path) -> None:
    """Anyone who may name the files of a folder may know what is wrong with them."""
    os.mkfifo(allowed / "pipe")
    (allowed / "large").write_bytes(b"x" * (MOST_BYTES + 1))
    (allowed / "full").write_bytes(b"x" * MOST_BYTES)
    files = SpecFiles((allowed,))
    assert refuse(files, allowed / "missing") == "No such file or directory"
    assert refuse(files, allowed / "pipe") == "it is not a regular file"
    assert refuse(files, allowed / "large") == "it is larger than 1 MiB"
    assert refuse(files, allowed) == _REFUSED  # the folder itself is not a file to read
    assert len(files.read(str(allowed / "full"))) == MOST_BYTES


def test_an_endless_file_is_not_read_even_if_every_file_is_allowed(allowed: Path) -> None:
    """A run of the user's own must not hang either."""
    assert EVERYWHERE.read(str(allowed / "ca.pem")) == b"certificate"
    for device in ("/dev/zero", "/dev/null", "/dev/tty"):
        assert refuse(EVERYWHERE, device) == "it is not a regular file"
    # A file without a size is bounded too. Files in `/proc` report a size of zero.
    assert EVERYWHERE.read("/proc/self/status")


def test_a_spec_is_judged_by_its_paths_alone(allowed: Path) -> None:
    """A coordinator does not have the files of its workers, so it does not look at the disk."""
    files = SpecFiles((allowed,))
    files.check(Spec())
    files.check(Spec(cacert=f"{allowed}/missing.pem", cert=f"{allowed}/a", key=f"{allowed}/b"))
    for key in ("cacert", "cert", "key"):
        for path in ("/etc/passwd", f"{allowed}/../other/secret", "ca.pem"):
            with pytest.raises(UserError) as caught:
                files.check(msgspec.structs.replace(Spec(), **{key: path}))
            assert str(caught.value).startswith(f"{key}: ")
            assert str(caught.value).endswith(f" cannot be used: {_REFUSED}")


def test_a_private_key_is_no_public_file() -> None:
    """It may be in a file of its own, or in that of the certificate."""
    body, cert, key = (str(FileRef.build(digit * 64, 1, "f")) for digit in "123")
    spec = Spec(body=body, cert=cert, key=key)
    assert list(list_files(spec)) == [cert, key, body]
    assert list(list_public_files(spec)) == [body]
    assert list(list_public_files(Spec(body=body, cert=cert))) == [body]
    assert list(list_public_files(Spec(body=body, cert=cert, key=cert))) == [body]
    assert list(list_public_files(Spec(body=body, cert=cert, key="/etc/key.pem"))) == [body]
    assert list(list_public_files(Spec(body=key, cacert=cert, cert=cert, key=key))) == []

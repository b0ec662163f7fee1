"""A file of user code is named by its path in a folder, and by what is in it."""

import pytest

from oku_core.spec.values.code_file import CodeFile, is_code_path, parse_code_files
from oku_core.spec.values.file_reference import FileRef

DIGEST = "0" * 64


@pytest.mark.parametrize("name", ["a.py", "a@sha256:b.py", "@sha256:"])
def test_a_file_is_read_as_it_was_built(name: str) -> None:
    """Whatever the user calls it."""
    built = CodeFile.build("lib/a.py", FileRef.build(DIGEST, 3, name))
    again = CodeFile(str(built))
    assert (again.path, again.file.digest, again.file.name) == ("lib/a.py", DIGEST, name)


@pytest.mark.parametrize("path", ["a.py", "lib/a.py", "größe.txt", "a b", "..a/b.."])
def test_a_path_stays_in_its_folder(path: str) -> None:
    """It may have folders."""
    assert is_code_path(path)


@pytest.mark.parametrize(
    "path",
    ["", "/a", "../a", "a/../b", ".", "./a", "a/", "a//b", "a\nb", "a\0", "a\udcff", "a@sha256:b", "a" * 401],
)
def test_any_other_path_is_refused(path: str) -> None:
    """It would lead elsewhere, or could not be written down."""
    assert not is_code_path(path)
    with pytest.raises(ValueError, match=r"is not of the form"):
        CodeFile(f"{path}@sha256:{DIGEST}:3:a")


def test_two_files_cannot_have_one_path() -> None:
    """One of them would be lost."""
    with pytest.raises(ValueError, match="two files have the same path"):
        parse_code_files([f"a@sha256:{DIGEST}:3:a", f"a@sha256:{'1' * 64}:3:a"])

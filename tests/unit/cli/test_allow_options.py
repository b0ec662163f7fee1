from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from oku_cli.allow_options import files_dir_option
from oku_core.errors import UserError
from oku_core.spec_files import SpecFiles


def read(*arguments: str, **environment: str) -> SpecFiles:
    """What the options of a command say of files."""
    found: list[SpecFiles] = []

    @click.command()
    @files_dir_option
    def command(files: SpecFiles) -> None:
        found.append(files)

    result = CliRunner().invoke(command, arguments, env=environment)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_no_file_may_be_named_unless_a_folder_is_given() -> None:
    """An empty variable gives none either."""
    assert read() == read(OKU_FILES_DIR="") == SpecFiles()


def test_several_folders_by_flags_or_by_variable() -> None:
    """In a variable they stand as in PATH."""
    folders = SpecFiles((Path("/a"), Path("/b")))
    assert read("--files-dir", "/a", "--files-dir", "/b") == read(OKU_FILES_DIR="/a:/b") == folders


@pytest.mark.parametrize("folder", ["", "certs", "."])
def test_a_folder_has_its_full_path(folder: str) -> None:
    """The working directory of a service is nothing that anybody has in mind; `/a::/b` must not allow it."""
    with pytest.raises(UserError, match=r"--files-dir: .* is not the full path of a folder"):
        read("--files-dir", folder)

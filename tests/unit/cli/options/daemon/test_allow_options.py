from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.allow_options import files_dir_option, refuse_secrets, secret_options
from oku_core.errors import UserError
from oku_core.spec.files import SpecFiles
from oku_core.spec.secrets import SecretSource


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
    """An empty variable gives no folder either."""
    assert read() == read(OKU_FILES_DIR="") == SpecFiles()


def test_several_folders_by_flags_or_by_variable() -> None:
    """A variable lists them as PATH does."""
    folders = SpecFiles((Path("/a"), Path("/b")))
    assert read("--files-dir", "/a", "--files-dir", "/b") == read(OKU_FILES_DIR="/a:/b") == folders


@pytest.mark.parametrize("folder", ["", "certs", "."])
def test_a_folder_has_its_full_path(folder: str) -> None:
    """Nobody wants to allow the working directory of a service; `/a::/b` must not do so."""
    with pytest.raises(UserError, match=r"--files-dir: .* is not the full path of a folder"):
        read("--files-dir", folder)


def read_secrets(*arguments: str, has_variables: bool = True, **environment: str) -> SecretSource:
    """What the options of a command say of secrets."""
    found: list[SecretSource] = []

    @click.command()
    @secret_options(has_variables=has_variables)
    def command(secrets: SecretSource) -> None:
        found.append(secrets)

    result = CliRunner().invoke(command, arguments, env=environment)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_no_secret_may_be_named_unless_it_is_allowed(tmp_path: Path) -> None:
    """Variables are allowed by name, files by their folder."""
    assert read_secrets() == read_secrets(OKU_ALLOW_ENV="", OKU_SECRETS_DIR="") == SecretSource()
    allowed = SecretSource(("A", "B_1"), tmp_path)
    assert read_secrets("--allow-env", "A", "--allow-env", "B_1", "--secrets-dir", str(tmp_path)) == allowed
    assert read_secrets(OKU_ALLOW_ENV="A B_1", OKU_SECRETS_DIR=str(tmp_path)) == allowed


def test_a_run_of_ones_own_is_told_by_flags_alone(tmp_path: Path) -> None:
    """The shell is the same for the next spec, which may be somebody else's."""
    given = read_secrets(has_variables=False, OKU_ALLOW_ENV="A", OKU_SECRETS_DIR=str(tmp_path))
    assert given == SecretSource()


@pytest.mark.parametrize("name", ["OKU_BROKER_URL", "OKU_TOKEN", "CELERY_BROKER_URL"])
def test_settings_of_its_own_are_not_secrets_for_targets(name: str) -> None:
    """Nobody wants to send the password of the broker to a target."""
    with pytest.raises(UserError, match=f"--allow-env: {name} is a setting of Oku's own"):
        read_secrets("--allow-env", name)


def test_what_cannot_be_allowed_is_told(tmp_path: Path) -> None:
    """The error comes before anything is started."""
    for name in ("", "A-B", "A=b", "1", "*"):
        with pytest.raises(UserError, match=r"--allow-env: .* is not the name of a variable"):
            read_secrets("--allow-env", name)
    with pytest.raises(UserError, match=r"--secrets-dir: .* is not a folder here"):
        read_secrets("--secrets-dir", str(tmp_path / "none"))


def test_remote_workers_have_secrets_of_their_own(tmp_path: Path) -> None:
    """A flag without effect would mislead."""
    refuse_secrets(SecretSource())
    for secrets in (SecretSource(("A",)), SecretSource((), tmp_path)):
        with pytest.raises(UserError, match="is for a local stack"):
            refuse_secrets(secrets)

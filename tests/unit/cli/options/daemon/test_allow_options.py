from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.allow_options import (
    confinement_options,
    files_dir_option,
    secret_options,
    user_code_options,
)
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement
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


def test_folders_with_files_are_allowed_by_flags_or_by_a_variable() -> None:
    """An empty variable gives no folder either."""
    assert read() == read(OKU_FILES_DIR="") == SpecFiles()
    # Several folders by flags or by variable. A variable lists them as PATH does.
    folders = SpecFiles((Path("/a"), Path("/b")))
    assert read("--files-dir", "/a", "--files-dir", "/b") == read(OKU_FILES_DIR="/a:/b") == folders
    for folder in ["", "certs", "."]:
        # A folder has its full path.
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


def test_secrets_are_allowed_by_name_and_by_folder(tmp_path: Path) -> None:
    """Variables are allowed by name, files by their folder."""
    assert read_secrets() == read_secrets(OKU_ALLOW_ENV="", OKU_SECRETS_DIR="") == SecretSource()
    allowed = SecretSource(("A", "B_1"), tmp_path)
    assert read_secrets("--allow-env", "A", "--allow-env", "B_1", "--secrets-dir", str(tmp_path)) == allowed
    assert read_secrets(OKU_ALLOW_ENV="A B_1", OKU_SECRETS_DIR=str(tmp_path)) == allowed
    # A run of ones own is told by flags alone.
    given = read_secrets(has_variables=False, OKU_ALLOW_ENV="A", OKU_SECRETS_DIR=str(tmp_path))
    assert given == SecretSource()
    # What cannot be allowed is told. The error comes before anything is started.
    for name in ("", "A-B", "A=b", "1", "*"):
        with pytest.raises(UserError, match=r"--allow-env: .* is not the name of a variable"):
            read_secrets("--allow-env", name)
    with pytest.raises(UserError, match=r"--secrets-dir: .* is not a folder here"):
        read_secrets("--secrets-dir", str(tmp_path / "none"))
    for name in ["OKU_BROKER_URL", "OKU_TOKEN", "CELERY_BROKER_URL"]:
        # Settings of its own are not secrets for targets.
        with pytest.raises(UserError, match=f"--allow-env: {name} is a setting of Oku's own"):
            read_secrets("--allow-env", name)


def read_confinement(*arguments: str, serves_others: bool, **environment: str) -> Confinement:
    """What a command is told."""
    found: list[Confinement] = []

    @click.command()
    @confinement_options(serves_others=serves_others)
    def command(confinement: Confinement) -> None:
        found.append(confinement)

    result = CliRunner().invoke(command, arguments, env=environment, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_user_code_is_confined_as_its_owner_says() -> None:
    """By flags, or by the variables that a chart sets."""
    assert read_confinement(serves_others=True) is Confinement.ON
    assert read_confinement("--no-confine-user-code", serves_others=True) is Confinement.OFF
    assert read_confinement("--require-confinement", serves_others=True) is Confinement.REQUIRED
    for confines, requires, expected in (
        ("false", "false", Confinement.OFF),
        ("true", "false", Confinement.ON),
        ("true", "true", Confinement.REQUIRED),
    ):
        variables = {"OKU_CONFINE_USER_CODE": confines, "OKU_REQUIRE_CONFINEMENT": requires}
        assert read_confinement(serves_others=True, **variables) is expected, variables
    # A run of ones own code is confined on request.
    assert read_confinement(serves_others=False) is Confinement.OFF
    assert read_confinement("--confine-user-code", serves_others=False) is Confinement.ON
    assert read_confinement("--require-confinement", serves_others=False) is Confinement.REQUIRED
    assert read_confinement(serves_others=False, OKU_CONFINE_USER_CODE="true") is Confinement.OFF
    # What contradicts itself is refused. Nothing is guessed.
    for given in ({"OKU_CONFINE_USER_CODE": "false"}, {}):
        flags = ["--require-confinement", *([] if given else ["--no-confine-user-code"])]
        with pytest.raises(UserError, match=r"^--require-confinement: cannot be combined"):
            read_confinement(*flags, serves_others=True, **given)


def read_flags(*arguments: str, **environment: str) -> dict[str, Any]:
    """What the options of a command say of user code."""
    found: dict[str, Any] = {}

    @click.command()
    @user_code_options
    def command(**options: Any) -> None:
        found.update(options)

    result = CliRunner().invoke(command, arguments, env=environment, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found


def test_the_limits_of_user_code_are_an_operators() -> None:
    """Limits are for an operator to say."""
    assert read_flags() == {
        "user_code_memory": 0,
        "user_code_niceness": 0,
        "inherited_variables": (),
    }
    # Flags and variables say the same. A variable separates names by blanks.
    flags = ("--user-code-memory", "1.5GB", "--user-code-niceness", "5")
    by_flags = read_flags(*flags, "--inherit-env", "REGION", "--inherit-env", "*")
    by_variables = read_flags(
        OKU_USER_CODE_MEMORY="1.5GB", OKU_USER_CODE_NICENESS="5", OKU_INHERIT_ENV="REGION *"
    )  # fmt: skip
    assert by_flags == by_variables
    assert by_flags == {
        "user_code_memory": 1_500_000_000,
        "user_code_niceness": 5,
        "inherited_variables": ("REGION", "*"),
    }
    # Limits and names that cannot be are refused. Nothing could be loaded.
    for size in ["127MB", "1", "much"]:
        with pytest.raises(UserError, match=r"^--user-code-memory: "):
            read_flags("--user-code-memory", size)
    for name in ["OKU_BROKER_URL", "OKU_MESSAGE_KEY", "CELERY_X", "A-B", "", "A*"]:
        # A name that no user code may see is refused. Neither a setting of Oku's own, nor what is not a name.
        with pytest.raises(UserError, match=r"^--inherit-env: "):
            read_flags("--inherit-env", name)

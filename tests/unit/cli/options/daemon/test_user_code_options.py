from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.user_code_options import (
    confinement_options,
    refuse_confinement,
    user_code_options,
)
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement


def read(*arguments: str, serves_others: bool, **environment: str) -> Confinement:
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


def test_a_worker_confines_user_code_unless_told_otherwise() -> None:
    """By flags, or by the variables that a chart sets."""
    assert read(serves_others=True) is Confinement.ON
    assert read("--no-confine-user-code", serves_others=True) is Confinement.OFF
    assert read("--require-confinement", serves_others=True) is Confinement.REQUIRED
    for confines, requires, expected in (
        ("false", "false", Confinement.OFF),
        ("true", "false", Confinement.ON),
        ("true", "true", Confinement.REQUIRED),
    ):
        variables = {"OKU_CONFINE_USER_CODE": confines, "OKU_REQUIRE_CONFINEMENT": requires}
        assert read(serves_others=True, **variables) is expected, variables


def test_a_run_of_ones_own_code_is_confined_on_request() -> None:
    """On the command line alone: a variable would be forgotten."""
    assert read(serves_others=False) is Confinement.OFF
    assert read("--confine-user-code", serves_others=False) is Confinement.ON
    assert read("--require-confinement", serves_others=False) is Confinement.REQUIRED
    assert read(serves_others=False, OKU_CONFINE_USER_CODE="true") is Confinement.OFF


def test_what_contradicts_itself_is_refused() -> None:
    """Nothing is guessed."""
    for given in ({"OKU_CONFINE_USER_CODE": "false"}, {}):
        flags = ["--require-confinement", *([] if given else ["--no-confine-user-code"])]
        with pytest.raises(UserError, match=r"^--require-confinement: cannot be combined"):
            read(*flags, serves_others=True, **given)


def test_remote_workers_are_not_told_by_a_user() -> None:
    """Their operator has decided."""
    refuse_confinement(Confinement.OFF)
    for confinement, flag in ((Confinement.ON, "confine-user-code"), (Confinement.REQUIRED, "require-conf")):
        with pytest.raises(UserError, match=rf"^--{flag}.*: is for a local stack"):
            refuse_confinement(confinement)


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


def test_by_default_user_code_sees_nothing_and_has_no_limit() -> None:
    """Limits are for an operator to say."""
    assert read_flags() == {
        "user_code_memory": 0,
        "user_code_niceness": 0,
        "inherited_variables": (),
    }


def test_flags_and_variables_say_the_same() -> None:
    """A variable separates names by blanks."""
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


@pytest.mark.parametrize("size", ["127MB", "1", "much"])
def test_a_limit_that_no_interpreter_fits_into_is_refused(size: str) -> None:
    """Nothing could be loaded."""
    with pytest.raises(UserError, match=r"^--user-code-memory: "):
        read_flags("--user-code-memory", size)


@pytest.mark.parametrize("name", ["OKU_BROKER_URL", "OKU_MESSAGE_KEY", "CELERY_X", "A-B", "", "A*"])
def test_a_name_that_no_user_code_may_see_is_refused(name: str) -> None:
    """Neither a setting of Oku's own, nor what is not a name."""
    with pytest.raises(UserError, match=r"^--inherit-env: "):
        read_flags("--inherit-env", name)

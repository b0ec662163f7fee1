import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.confinement_options import confinement_options, refuse_confinement
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

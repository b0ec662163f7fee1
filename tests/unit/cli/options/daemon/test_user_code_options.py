from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.user_code_options import user_code_options
from oku_core.errors import UserError


def read(*arguments: str, **environment: str) -> dict[str, Any]:
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
    assert read() == {"user_code_memory": 0, "user_code_niceness": 0, "inherited_variables": ()}


def test_flags_and_variables_say_the_same() -> None:
    """A variable separates names by blanks."""
    flags = ("--user-code-memory", "1.5GB", "--user-code-niceness", "5")
    by_flags = read(*flags, "--inherit-env", "REGION", "--inherit-env", "*")
    by_variables = read(
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
        read("--user-code-memory", size)


@pytest.mark.parametrize("name", ["OKU_BROKER_URL", "OKU_MESSAGE_KEY", "CELERY_X", "A-B", "", "A*"])
def test_a_name_that_no_user_code_may_see_is_refused(name: str) -> None:
    """Neither a setting of Oku's own, nor what is not a name."""
    with pytest.raises(UserError, match=r"^--inherit-env: "):
        read("--inherit-env", name)

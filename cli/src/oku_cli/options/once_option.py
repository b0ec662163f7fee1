"""`--once KEY`: a command that is started again goes on with its run instead of sending it again."""

from collections.abc import Callable
from typing import Any, TypeVar

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.options.option_parser import Parsed
from oku_core.accounting.idempotency_key import check_idempotency_key

_Command = TypeVar("_Command", bound=Callable[..., Any])


def once_option(command: _Command) -> _Command:
    """`--once KEY`."""
    decorated: _Command = option(
        OptionGroup.STOPPING,
        "--once",
        metavar="KEY",
        type=Parsed("key", check_idempotency_key),
        help="Send this run once for KEY, such as the name of a job: follow the run that has KEY, resume it "
        "if it is paused, or return its exit code if it is over. "
        "At a coordinator, --on-sigterm then defaults to detach.",
    )(command)
    return decorated

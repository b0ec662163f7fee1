"""How long runs are kept: flags of `oku coordinator`, and their variables for the one of a local stack.

`oku run` has no such flags: they are of a data folder, not of a run.
"""

import os
from typing import TYPE_CHECKING, Any, TypeVar

import click

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.options.option_parser import build_duration, naming
from oku_core.errors import UserError, format_value

if TYPE_CHECKING:
    from oku_coordinator.settings import RetentionRule

_Command = TypeVar("_Command", bound=Any)

_KEEP_RUNS, _KEEP_FOR = "OKU_KEEP_RUNS", "OKU_KEEP_FOR"
_KEEP_FOR_TYPE = build_duration("1m", "36500d")


def retention_options(command: _Command) -> _Command:
    """`--keep-runs` and `--keep-for`."""
    keep_runs = option(
        OptionGroup.LEDGER,
        "--keep-runs",
        metavar="N",
        envvar=_KEEP_RUNS,
        type=click.IntRange(min=0),
        help="Keep only the newest N finished runs; default: all.",
    )
    keep_for = option(
        OptionGroup.LEDGER,
        "--keep-for",
        "keep_for_s",
        type=_KEEP_FOR_TYPE,
        envvar=_KEEP_FOR,
        help="Delete runs this long after their end, such as 30d; default: never.",
    )
    decorated: _Command = keep_runs(keep_for(command))
    return decorated


def pick_retention(options: dict[str, Any]) -> "RetentionRule":
    """Take what was given out of the options of a command."""
    from oku_coordinator.settings import RetentionRule  # noqa: PLC0415  # loads the ledger

    return RetentionRule(keep_runs=options.pop("keep_runs"), keep_for_s=options.pop("keep_for_s"))


def read_retention_variables() -> dict[str, str]:
    """Those that are set, for the coordinator of a local stack; `UserError` when one is wrong."""
    found = {name: value for name in (_KEEP_RUNS, _KEEP_FOR) if (value := os.environ.get(name))}
    keep_runs = found.get(_KEEP_RUNS, "0")
    if not (keep_runs.isascii() and keep_runs.isdigit()):
        raise UserError(f"{_KEEP_RUNS}: {format_value(keep_runs)} is not a number of runs")
    if _KEEP_FOR in found:
        with naming(_KEEP_FOR):
            _KEEP_FOR_TYPE.parse(found[_KEEP_FOR])
    return found

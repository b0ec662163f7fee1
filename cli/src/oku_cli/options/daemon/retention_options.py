"""How long runs are kept: flags of `oku coordinator`, and their variables for the one of a local stack.

`oku run` has no such flags: they are of a data folder, not of a run.
"""

import os
from typing import TYPE_CHECKING, Any

import click

from oku_cli.options.option_group import OptionGroup, add_joined_options, build_duration, naming, option
from oku_core.errors import UserError, format_value

if TYPE_CHECKING:
    from oku_coordinator.settings import RetentionRule


_KEEP_RUNS, _KEEP_FOR, _KEEP_KEYS = "OKU_KEEP_RUNS", "OKU_KEEP_FOR", "OKU_KEEP_KEYS"
_DURATION = build_duration("1m", "36500d")
_KEPT_KEYS = "30d"


def _pick_retention(options: dict[str, Any]) -> "RetentionRule":
    from oku_coordinator.settings import RetentionRule  # noqa: PLC0415  # loads the ledger

    return RetentionRule(**{name: options.pop(name) for name in ("keep_runs", "keep_for_s", "keep_keys_s")})


retention_options = add_joined_options(
    "retention",
    _pick_retention,
    option(
        OptionGroup.LEDGER,
        "--keep-runs",
        metavar="N",
        envvar=_KEEP_RUNS,
        type=click.IntRange(min=0),
        help="Keep only the newest N finished runs; default: all.",
    ),
    option(
        OptionGroup.LEDGER,
        "--keep-for",
        "keep_for_s",
        type=_DURATION,
        envvar=_KEEP_FOR,
        help="Delete runs this long after their end, such as 30d; default: never.",
    ),
    option(
        OptionGroup.LEDGER,
        "--keep-keys",
        "keep_keys_s",
        type=_DURATION,
        envvar=_KEEP_KEYS,
        default=_KEPT_KEYS,
        show_default=True,
        help="Forget the key of a run, which oku run --once gave it, this long after the run was deleted.",
    ),
)


def read_retention_variables() -> dict[str, str]:
    """Those that are set, for the coordinator of a local stack; `UserError` when one is wrong."""
    found = {name: value for name in (_KEEP_RUNS, _KEEP_FOR, _KEEP_KEYS) if (value := os.environ.get(name))}
    keep_runs = found.get(_KEEP_RUNS, "0")
    if not (keep_runs.isascii() and keep_runs.isdigit()):
        raise UserError(f"{_KEEP_RUNS}: {format_value(keep_runs)} is not a number of runs")
    for name in found.keys() - {_KEEP_RUNS}:
        with naming(name):
            _DURATION.parse(found[name])
    return found


def read_kept_keys_s() -> float:
    """How many seconds the keys of a data folder are kept after the deletion of their runs."""
    with naming(_KEEP_KEYS):
        return float(str(_DURATION.parse(os.environ.get(_KEEP_KEYS) or _KEPT_KEYS)))

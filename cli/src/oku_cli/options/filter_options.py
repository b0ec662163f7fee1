"""The options that select failed requests: `--outcome`, `--target` and `--reason`."""

from typing import Any

import click

from oku_cli.options.option_group import OptionGroup, add_joined_options, option
from oku_core.accounting.outcome import Outcome
from oku_core.results.failure_filter import FailureFilter

_OUTCOMES = [outcome.value for outcome in Outcome if outcome is not Outcome.OK]


def _pick_filter(options: dict[str, Any]) -> FailureFilter:
    outcome, target = options.pop("outcome"), options.pop("target")
    return FailureFilter(
        outcome=None if outcome is None else Outcome(outcome), target=target, reasons=options.pop("reasons")
    )


filter_options = add_joined_options(
    "only",
    _pick_filter,
    option(
        OptionGroup.FAILURES,
        "--outcome",
        metavar="OUTCOME",
        type=click.Choice(_OUTCOMES),
        help="Only those with this outcome, such as timeout.",
    ),
    option(OptionGroup.FAILURES, "--target", metavar="NAME", help="Only those of this target."),
    option(
        OptionGroup.FAILURES,
        "--reason",
        "reasons",
        metavar="REASON",
        multiple=True,
        help="Only those that failed for this reason, such as 'status 500'; may be given several times.",
    ),
)
"""The command gets one `only`."""

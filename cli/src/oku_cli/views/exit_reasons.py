"""Why a command that followed a run to its end does not end with 0: one list, which every output goes by."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from oku_cli.exit_code import ExitCode
from oku_core.accounting.outcome import count_sent
from oku_core.accounting.run_state import REST_STATES, RunState
from oku_core.results.summary import Summary
from oku_core.results.validity import Flag
from oku_core.tables.formatting import format_count, in_units
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_VERBS = {ThresholdVerdict.FAILED: "failed", ThresholdVerdict.UNDECIDED: "is undecided"}


class ExitReason(NamedTuple):
    """Something that keeps the exit code from being 0.

    Args:
        code: the exit code that it asks for.
        text: a sentence without its full stop.
    """

    code: ExitCode
    text: str


def list_exit_reasons(
    summary: Summary, *, allows_undecided: bool = False, lost_output: Sequence[str] = ()
) -> list[ExitReason]:
    """List the reasons, that for the exit code itself first; there are none exactly if it is 0.

    Args:
        summary: of the run.
        allows_undecided: whether an undecided threshold leaves the exit code as it is.
        lost_output: why files or standard output could not be written.
    """
    lost = [ExitReason(ExitCode.WRONG_INPUT, text) for text in lost_output]
    return [*lost, *_iter_reasons(summary, allows_undecided=allows_undecided)]


def describe_nothing_ok(summary: Summary) -> str:
    """Say that nothing of a run at rest was ok, and whether anything was sent; empty if something was."""
    has_results = summary.accounted > 0 or summary.state is RunState.COMPLETED
    if summary.outcomes.ok or not has_results or summary.state not in REST_STATES:
        return ""
    counted = in_units("requests", summary.unit)
    if not count_sent(msgspec.structs.astuple(summary.outcomes)):
        due = f", and {format_count(summary.accounted)} were due" if summary.accounted else ""
        return f"no {counted} were sent{due}"
    return f"none of {format_count(summary.accounted)} accounted {counted} were ok"


def _iter_reasons(summary: Summary, *, allows_undecided: bool) -> Iterator[ExitReason]:
    for validity in summary.validity:
        if validity.flag is Flag.UNBALANCED:
            detail = in_units(validity.detail, summary.unit)
            yield ExitReason(ExitCode.UNBALANCED, f"the account does not balance: {detail}")
    for text in _iter_not_passed(summary, allows_undecided=allows_undecided):
        yield ExitReason(ExitCode.NOT_PASSED, text)
    if summary.state is not RunState.COMPLETED:
        reason = f": {summary.reason}" if summary.reason else ""
        yield ExitReason(ExitCode.CUT_SHORT, f"the run is {summary.state}{reason}")


def _iter_not_passed(summary: Summary, *, allows_undecided: bool) -> Iterator[str]:
    undecided = () if allows_undecided else (ThresholdVerdict.UNDECIDED,)
    wrong = (ThresholdVerdict.FAILED, *undecided)
    # A run that is paused can go on, and has no verdict before.
    if summary.verdict not in wrong or summary.state is RunState.PAUSED:
        return
    texts = [
        f"the threshold {threshold.expression} {_VERBS[threshold.verdict]}"
        for threshold in summary.thresholds
        if threshold.verdict in wrong
    ]
    texts += filter(None, [describe_nothing_ok(summary)])
    yield from texts or [f"the verdict on the run is {summary.verdict}"]

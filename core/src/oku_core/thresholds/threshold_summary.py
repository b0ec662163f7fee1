"""The result of a threshold, in the form that people, scripts and dashboards read."""

from collections.abc import Collection
from enum import StrEnum

import msgspec

from oku_core.spec.values.threshold import FigureUnit


class ThresholdVerdict(StrEnum):
    """The verdict on a threshold, or on all of a run."""

    PASSED = "passed"
    """It holds, and the rest of the run cannot change that."""
    FAILED = "failed"
    """It does not hold, and the rest of the run cannot change that."""
    UNDECIDED = "undecided"
    """The run has not shown it yet, or could not."""


class ThresholdSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold and its result.

    `value` and `limit` are in `unit`; `value` is None if there is none: nothing is known yet, or a quantile
    lies among requests without an answer. `holds` is whether it would hold if the run ended now, and None
    without a value. `against` is how many requests count against it and `allowed` how many may, at most,
    before it is lost; None if it is not a count, or while the number of requests is unknown. `detail`
    explains why it is undecided.

    For a threshold over some seconds in a row, `value` is of the worst of them. If it failed, `lost_s` is the
    time of the run's clock at the end of the first seconds in which it did not hold, `lost_phase` their phase
    (empty if the run has only one), and `lost_value` their value, in `unit`.
    """

    expression: str
    verdict: ThresholdVerdict
    value: float | None = None
    limit: float
    unit: FigureUnit
    holds: bool | None = None
    against: int | None = None
    allowed: int | None = None
    detail: str = ""
    lost_s: float | None = None
    lost_phase: str | None = None
    lost_value: float | None = None


def sum_up(verdicts: Collection[ThresholdVerdict], *, is_nothing_ok: bool = False) -> ThresholdVerdict | None:
    """The verdict on a run from those on its thresholds; None if there is nothing to judge by.

    A run that is over and had no request that was ok fails in any case.
    """
    if is_nothing_ok or ThresholdVerdict.FAILED in verdicts:
        return ThresholdVerdict.FAILED
    if ThresholdVerdict.UNDECIDED in verdicts:
        return ThresholdVerdict.UNDECIDED
    return ThresholdVerdict.PASSED if verdicts else None

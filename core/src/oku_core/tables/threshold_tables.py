"""Builds the table of thresholds, and describes how one stands and how far it is from being lost."""

from collections.abc import Iterator, Sequence

import msgspec

from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.judgement import Judgement
from oku_core.tables.formatting import format_count
from oku_core.tables.table import Cell, Column, Quantity, Rank, Role, Table, build_measured, build_table
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

_JUDGEMENTS = {
    ThresholdVerdict.PASSED: Judgement.GOOD,
    ThresholdVerdict.FAILED: Judgement.BAD,
    ThresholdVerdict.UNDECIDED: Judgement.CAUTION,
}
_QUANTITIES = {
    FigureUnit.MS: Quantity.LATENCY,
    FigureUnit.SHARE: Quantity.SHARE,
    FigureUnit.REQUESTS: Quantity.COUNT,
    FigureUnit.PER_SECOND: Quantity.RATE,
    FigureUnit.OF_PLAN: Quantity.SHARE,
}
_NOTE = (
    "A time counts as slower than a limit if it lies in the same bucket, which is 0.1 % wide. "
    "Times over some seconds in a row are judged by what was seen live."
)
_COLUMNS = (
    Column(key="threshold", head="threshold", role=Role.NAME),
    Column(key="verdict", head="verdict", role=Role.TEXT),
    Column(key="limit", head="limit", role=Role.NUMBER, rank=Rank.DETAIL),
    Column(key="standing", head="how it stands", role=Role.TEXT),
)


def build_thresholds(thresholds: Sequence[ThresholdSummary], *, most: int | None = None) -> Table:
    """Build the table of thresholds in their order; of more than `most`, those nearest to being lost."""
    shown = thresholds if most is None else _pick_nearest(thresholds, most)
    rows = (
        (
            threshold.expression,
            Cell(text=describe_verdict(threshold), judgement=_JUDGEMENTS[threshold.verdict]),
            _build_cell(threshold, _format_value(threshold.limit, threshold.unit), threshold.limit),
            _build_cell(threshold, describe_standing(threshold), threshold.value),
        )
        for threshold in shown
    )
    table = build_table("thresholds", "Thresholds", _COLUMNS, rows, _NOTE)
    return msgspec.structs.replace(table, left_out=len(thresholds) - len(shown))


def describe_verdict(threshold: ThresholdSummary) -> str:
    """The verdict; while the run goes on, whether the threshold holds so far."""
    if threshold.verdict is not ThresholdVerdict.UNDECIDED or threshold.detail or threshold.holds is None:
        return str(threshold.verdict)
    return "holds so far" if threshold.holds else "fails so far"


def describe_standing(threshold: ThresholdSummary) -> str:
    """Describe the value, how many requests violate the threshold and how many may, and the doubts."""
    return "; ".join(_iter_facts(threshold))


def _pick_nearest(thresholds: Sequence[ThresholdSummary], most: int) -> list[ThresholdSummary]:
    """At most this many thresholds, in their order: lost ones, then the nearest to being lost."""
    nearest = sorted(thresholds, key=_measure_margin)[:most]
    return [threshold for threshold in thresholds if threshold in nearest]


def _build_cell(threshold: ThresholdSummary, text: str, value: float | None) -> Cell:
    return Cell(text=text) if value is None else build_measured(_QUANTITIES[threshold.unit], value, text)


def _format_value(value: float | None, unit: FigureUnit) -> str:
    """A value or a limit of a threshold with its unit; requests without an answer have no time."""
    if value is None:
        return "no answer" if unit is FigureUnit.MS else "no value"
    text = build_measured(_QUANTITIES[unit], value).text
    if unit is not FigureUnit.OF_PLAN:
        return text
    return f"{text if value <= 1 else f'{100 * value:.2f} %'} of plan"


def _iter_facts(threshold: ThresholdSummary) -> Iterator[str]:
    if threshold.holds is not None:
        yield _format_value(threshold.value, threshold.unit)
    if (
        threshold.against is not None
        and threshold.allowed is not None
        and threshold.unit is not FigureUnit.REQUESTS
    ):
        yield f"{threshold.against:,} of at most {threshold.allowed:,} against it"
    if threshold.lost_s is not None:
        yield _describe_loss(threshold)
    if threshold.detail:
        yield threshold.detail


def _describe_loss(threshold: ThresholdSummary) -> str:
    """Where a threshold over some seconds in a row was lost, and with which value."""
    value = _format_value(threshold.lost_value, threshold.unit)
    phase = f" in phase {threshold.lost_phase}" if threshold.lost_phase else ""
    return f"lost with {value} at second {format_count(round(threshold.lost_s or 0.0))}{phase}"


def _measure_margin(threshold: ThresholdSummary) -> float:
    """How much is left until a threshold is lost, from 0 to 1; less than 0 if it is lost or does not hold."""
    if threshold.verdict is ThresholdVerdict.FAILED:
        return -2.0
    if threshold.allowed is not None and threshold.against is not None:
        return 1.0 - (threshold.against + 1) / (threshold.allowed + 1)
    return -1.0 if threshold.holds is False else 1.0

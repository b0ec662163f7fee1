from typing import Any

from tests.kit.runs.summaries import list_texts

from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.judgement import Judgement
from oku_core.tables.threshold_tables import build_thresholds, describe_standing, describe_verdict
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict


def build(
    expression: str = "p99 < 1s", verdict: ThresholdVerdict = _UNDECIDED, **known: Any
) -> ThresholdSummary:
    """A threshold on a time."""
    values: dict[str, Any] = {"limit": 1000.0, "unit": FigureUnit.MS} | known
    return ThresholdSummary(expression=expression, verdict=verdict, **values)


def test_each_threshold_has_a_row_with_its_limit() -> None:
    """Rounding never makes a bad number look good."""
    texts: list[tuple[float | None, FigureUnit, str]] = [
        (212.0, FigureUnit.MS, "212 ms"),
        (None, FigureUnit.MS, "no answer"),
        (0.9991, FigureUnit.SHARE, "99.91 %"),
        (0.999999, FigureUnit.SHARE, "> 99.99 %"),
        (3.0, FigureUnit.REQUESTS, "3"),
        (99.5, FigureUnit.PER_SECOND, "100/s"),
        (0.97, FigureUnit.OF_PLAN, "97.00 % of plan"),
        (1.5, FigureUnit.OF_PLAN, "150.00 % of plan"),
        (None, FigureUnit.SHARE, "no value"),
    ]
    shown = [describe_standing(build(value=value, unit=unit, holds=True)) for value, unit, _ in texts]
    assert shown == [text for _, _, text in texts]
    # Each threshold has a row with its limit. The colour of a verdict says the same as its word.
    rows = [build(verdict=verdict, holds=True, value=212.0) for verdict in ThresholdVerdict]
    table = build_thresholds(rows)
    assert list_texts(table) == [
        ["threshold", "verdict", "limit", "how it stands"],
        ["p99 < 1s", "passed", "1.00 s", "212 ms"],
        ["p99 < 1s", "failed", "1.00 s", "212 ms"],
        ["p99 < 1s", "holds so far", "1.00 s", "212 ms"],
    ]
    judgements = [row.cells[1].judgement for row in table.rows]
    assert judgements == [Judgement.GOOD, Judgement.BAD, Judgement.CAUTION]


def test_a_threshold_says_how_it_was_or_may_be_lost() -> None:
    """With the phase if the run has several, the second, and the value; the worst value is beside it."""
    lost: dict[str, Any] = {
        "unit": FigureUnit.OF_PLAN,
        "limit": 0.99,
        "holds": False,
        "value": 0.4,
        "lost_s": 12.0,
    }
    threshold = build(verdict=_FAILED, lost_value=0.876, lost_phase="steady", **lost)
    assert (
        describe_standing(threshold)
        == "40.00 % of plan; lost with 87.60 % of plan at second 12 in phase steady"
    )
    threshold = build(verdict=_FAILED, lost_value=0.876, lost_phase="", **lost)
    assert describe_standing(threshold) == "40.00 % of plan; lost with 87.60 % of plan at second 12"
    threshold = build(holds=False, value=None, lost_s=3721.0, lost_phase="", lost_value=None)
    assert describe_standing(threshold) == "no answer; lost with no answer at second 3,721"
    # A threshold says how far it is from being lost. By requests, where it is a count of them.
    assert describe_standing(build(holds=True, value=212.0, against=3, allowed=10)) == (
        "212 ms; 3 of at most 10 against it"
    )
    assert describe_standing(build(holds=True, value=212.0)) == "212 ms"
    assert (
        describe_standing(build(detail="there are no requests to judge")) == "there are no requests to judge"
    )
    # While a run goes on it is said whether a threshold holds so far.
    assert describe_verdict(build(holds=True)) == "holds so far"
    assert describe_verdict(build(holds=False)) == "fails so far"
    assert describe_verdict(build(holds=False, detail="the run was cut short")) == "undecided"
    assert describe_verdict(build()) == "undecided"
    assert describe_verdict(build(verdict=_PASSED, holds=True)) == "passed"


def test_where_there_is_little_room_those_nearest_to_being_lost_are_shown() -> None:
    """They stay in their order."""
    far = build("far", holds=True, against=1, allowed=100)
    near = build("near", holds=True, against=90, allowed=100)
    lost = build("lost", _FAILED)
    failing = build("failing", holds=False)
    rows = [far, near, lost, failing]

    table = build_thresholds(rows, most=3)
    assert [row.cells[0].text for row in table.rows] == ["near", "lost", "failing"]
    assert table.left_out == 1
    assert len(build_thresholds(rows, most=4).rows) == len(rows)

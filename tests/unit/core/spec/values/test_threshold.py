from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import Outcome
from oku_core.spec.values.threshold import (
    MOST_THRESHOLDS,
    FigureKind,
    FigureUnit,
    Threshold,
    parse_thresholds,
)
from oku_core.spec.values.threshold_reader import ComparisonOperator


@pytest.mark.parametrize(
    ("text", "time", "quantile", "limit_ms"),
    [
        ("p99 < 300ms", Time.LATENCY, Fraction(99, 100), 300),
        ("p99.9<=2s", Time.LATENCY, Fraction(999, 1000), 2000),
        ("latency p50 < 1.5ms", Time.LATENCY, Fraction(1, 2), Fraction(3, 2)),
        ("response_time p95 < 1m", Time.RESPONSE_TIME, Fraction(19, 20), 60_000),
        ("lateness max < 250us", Time.LATENESS, Fraction(1), Fraction(1, 4)),
        ("max < 1h", Time.LATENCY, Fraction(1), 3_600_000),
    ],
)
def test_a_quantile_of_a_time_is_limited_from_above(
    text: str, time: Time, quantile: Fraction, limit_ms: Fraction
) -> None:
    """The largest time is the quantile that all requests keep to."""
    threshold = Threshold(text)

    assert (threshold, threshold.kind, threshold.unit) == (text, FigureKind.QUANTILE, FigureUnit.MS)
    assert (threshold.time, threshold.quantile, threshold.limit) == (time, quantile, limit_ms)


@pytest.mark.parametrize(
    ("text", "outcomes", "unit", "limit"),
    [
        ("ok >= 99.9%", {Outcome.OK}, FigureUnit.SHARE, Fraction(999, 1000)),
        ("not_sent + lost < 0.01%", {Outcome.NOT_SENT, Outcome.LOST}, FigureUnit.SHARE, Fraction(1, 10_000)),
        ("timeout <= 3", {Outcome.TIMEOUT}, FigureUnit.REQUESTS, Fraction(3)),
        ("ok > 1.5k", {Outcome.OK}, FigureUnit.REQUESTS, Fraction(1500)),
        ("failed <= 0%", set(Outcome) - {Outcome.OK, Outcome.NOT_SENT, Outcome.LOST}, FigureUnit.SHARE, 0),
    ],
)
def test_outcomes_are_limited_by_a_share_or_by_a_number(
    text: str, outcomes: set[Outcome], unit: FigureUnit, limit: Fraction
) -> None:
    """Several outcomes are counted together, and `failed` stands for all that is neither ok nor unsent."""
    threshold = Threshold(text)

    assert (threshold.kind, set(threshold.outcomes)) == (FigureKind.OUTCOMES, outcomes)
    assert (threshold.unit, threshold.limit) == (unit, limit)


@pytest.mark.parametrize(
    ("text", "unit", "limit"),
    [
        ("rate >= 100/s", FigureUnit.PER_SECOND, Fraction(100)),
        ("rate > 300/m", FigureUnit.PER_SECOND, Fraction(5)),
        ("rate >= 0.99 of plan", FigureUnit.OF_PLAN, Fraction(99, 100)),
        ("rate >= 99% of plan", FigureUnit.OF_PLAN, Fraction(99, 100)),
    ],
)
def test_a_rate_is_limited_by_a_rate_or_by_the_plan(text: str, unit: FigureUnit, limit: Fraction) -> None:
    """The plan is that of a run with a rate."""
    threshold = Threshold(text)

    assert (threshold.kind, threshold.unit, threshold.limit) == (FigureKind.RATE, unit, limit)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("p99 < 300", "character 7: 300 is not a duration with its unit"),
        ("p99 > 1s", "character 5: > is not < or <=: a time can only be limited from above"),
        ("p99 < 2h", "character 7: 2h is not more than 0ms and at most 1h"),
        ("p99 < 0ms", "character 7: 0ms is not more than 0ms and at most 1h"),
        ("p0 < 1s", "character 1: p0 is not a percentile above p0 and up to p100"),
        ("p101 < 1s", "character 1: p101 is not a percentile above p0"),
        ("p99x < 1s", "character 1: p99x is not a percentile such as p99"),
        ("okay >= 3%", "character 1: okay is not a figure: p99, mean, max, rate, or outcomes"),
        ("ok + oops < 3", "character 6: oops is not one of ok, unexpected_status"),
        ("latency ok < 3", "character 9: ok is not a figure"),
        ("ok", "at its end, one of <, <=, >, >= is missing"),
        ("ok = 3", "character 4: = is not one of <, <=, >, >="),
        ("ok >=", "at its end, a share such as 99.9% or a number of requests is missing"),
        ("ok >= 101%", "character 7: 101% is not between 0% and 100%"),
        ("ok >= -1", "character 7: -1 is not between 0 and 1e15"),
        ("ok >= 1e400", "character 7: 1e400 is not between 0 and 1e15"),
        ("rate >= 1e400 of plan", "character 9: 1e400 is not between 0 and 1000 of plan"),
        ("ok >= 99.9", "character 7: 99.9 is not a whole number of requests; a share is 99.9%"),
        ("ok > 100%", "character 6: 100% is not a limit that can hold with >"),
        ("timeout < 0", "character 11: 0 is not a limit that can hold with <"),
        ("rate >= 0.9", "character 9: 0.9 is not a rate such as 100/s, or a share of the plan"),
        ("ok >= 99% now", "character 11: now is not during PHASE, over DURATION or : abort"),
        ("p99 < 1s of buy", "character 10: of is not allowed here: of TARGET stands before the comparison"),
        ("ok >= 1 during a during b", "character 18: during is not during PHASE, over DURATION"),
        ("ok >= 99% during", "at its end, the name of a phase is missing"),
        ('ok >= 9% during "x', 'character 17: a " is never closed'),
        ("p99 < 1s over 100ms", "character 15: 100ms is not between 1s and 1h"),
        ("p99 < 1s: stop", "character 11: stop is not abort"),
        ("p99 < 1s: abort now", "character 17: now is not allowed after it"),
        ("mean < 1s: abort", "character 12: abort is not possible: a mean is known at the end only"),
        ("rate > 1/s: abort", "abort is not possible: a rate is known at the end only; say over which time"),
        ("p99 of buy < 1s over 5s", "`over` cannot be combined with `of buy`"),
        ("rate of buy >= 0.9 of plan", "`of plan` is of all requests, not of buy"),
        ("", "is not a threshold such as p99 < 300ms or ok >= 99.9%"),
        ("p99 <\n1s", "is not a threshold such as"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_is_allowed(text: str, error: str) -> None:
    """The place is that of the first character that cannot stand there."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011  # the message is compared
        Threshold(text)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_threshold_may_be_about_a_target_a_phase_or_some_seconds_and_may_end_the_run() -> None:
    """What is not said is: all targets, all phases but the warm-up, the whole of the time, and no abort."""
    plain, scoped = Threshold("p99 < 1s"), Threshold('p99 of "add to cart" < 1s during steady')
    recent = Threshold("rate >= 0.99 of plan over 10s during steady: abort")
    assert (plain.target, plain.phase, plain.over_s, plain.aborts) == (None, None, None, False)
    assert (scoped.target, scoped.phase) == ("add to cart", "steady")
    assert (recent.over_s, recent.phase, recent.aborts) == (Fraction(10), "steady", True)
    assert recent.comparison is ComparisonOperator.AT_LEAST
    # A file may have one threshold or a list and yaml reads the colon as a mapping.
    assert parse_thresholds("ok >= 99%") == ("ok >= 99%",)
    assert parse_thresholds(["ok >= 99%", {"p99 < 1s": "abort"}]) == ("ok >= 99%", "p99 < 1s: abort")
    assert parse_thresholds([{"p99 < 1s": "abort"}])[0].aborts


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([], "no threshold is given"),
        (["ok > 1"] * 2, "ok > 1 is given twice"),
        ([f"ok > {number}" for number in range(MOST_THRESHOLDS + 1)], "51 thresholds are more than 50"),
        (3, "3 is not text"),
        ({"p99 < 1s": 3}, "3 is not text"),
        ({"p99": "x", "p98": "y"}, "is not text"),
        (None, "null is not text"),
    ],
)
def test_a_list_that_is_no_list_of_thresholds_is_refused(value: object, error: str) -> None:
    """One line says what is wrong."""
    with pytest.raises(ValueError, match=error):
        parse_thresholds(value)


_WORDS = st.sampled_from([
    "p99", "p99.9", "max", "mean", "rate", "ok", "timeout", "+", "<", "<=", ">", ">=", "300ms", "2s", "99.9%",
    "3", "100/s", "0.9", "of", "plan", "during", "over", "10s", ":", "abort", "steady", '"a b"', "latency",
])  # fmt: skip


@given(st.lists(_WORDS, max_size=10).map(" ".join) | st.text())
def test_whatever_is_written_is_read_or_answered_in_one_line(text: str) -> None:
    """The parser raises only `ValueError`, and what it accepts is read back as the same."""
    message = "no error"
    try:
        threshold = Threshold(text)
    except ValueError as error:
        message = str(error)
    else:
        again = Threshold(str(threshold))
        assert all(getattr(again, name) == getattr(threshold, name) for name in Threshold.__slots__)
    assert message.isprintable()

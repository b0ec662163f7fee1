from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from oku_core.spec.values.threshold_reader import ComparisonOperator
from oku_core.thresholds.counting import Condition, HitCount
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict
_shares = st.fractions(0, 1, max_denominator=1000).map(lambda limit: (limit, True))
_numbers = st.integers(0, 60).map(lambda limit: (Fraction(limit), False))
_conditions = st.builds(
    lambda comparison, limit: Condition(comparison, limit[0], is_share=limit[1]),
    st.sampled_from(ComparisonOperator),
    _shares | _numbers,
)


@st.composite
def _courses(draw: st.DrawFn) -> tuple[list[str], int]:
    """The results of the requests of a run in the order in which they end, and how many have ended so far."""
    results = draw(st.lists(st.sampled_from(["hit", "miss", "unknown"]), min_size=1, max_size=50))
    return results, draw(st.integers(0, len(results)))


def _count(results: list[str], so_far: int) -> HitCount:
    ended = results[:so_far]
    return HitCount(
        hits=ended.count("hit"),
        total=so_far,
        unknown=ended.count("unknown"),
        rest=len(results) - so_far,
    )


@given(_conditions, _courses())
def test_a_verdict_that_is_certain_never_changes_whatever_the_rest_brings(
    condition: Condition, course: tuple[list[str], int]
) -> None:
    """At the end, and at every moment before it, the verdict is the one that was given first."""
    results, so_far = course
    early = condition.judge(_count(results, so_far))
    assume(early is not _UNDECIDED)
    assert all(condition.judge(_count(results, later)) is early for later in range(so_far, len(results) + 1))


@given(_conditions, _courses(), st.integers(0, 50))
def test_a_verdict_stays_if_fewer_come_than_could(
    condition: Condition, course: tuple[list[str], int], surplus: int
) -> None:
    """The rest is a bound: how many requests a target or a phase gets may not be known beforehand."""
    results, so_far = course
    count = _count(results, so_far)
    bound = HitCount(hits=count.hits, total=count.total, unknown=count.unknown, rest=count.rest + surplus)
    early = condition.judge(bound)
    assume(early is not _UNDECIDED)
    assert condition.judge(_count(results, len(results))) is early


@given(_conditions, st.lists(st.booleans(), min_size=1, max_size=50))
def test_at_the_end_what_holds_has_passed_and_what_does_not_has_failed(
    condition: Condition, results: list[bool]
) -> None:
    """Where nothing is unknown, every threshold is decided once the last request has ended."""
    hits, total = sum(results), len(results)
    verdict = condition.judge(HitCount(hits=hits, total=total))
    assert verdict is (_PASSED if condition.holds(hits, total) else _FAILED)


@given(_conditions, st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_as_many_requests_may_count_against_a_threshold_as_it_says(
    condition: Condition, hits: int, misses: int, rest: int
) -> None:
    """It is lost with the first request beyond these, and not before."""
    count = HitCount(hits=hits, total=hits + misses, rest=rest)
    assume(count.total + rest)
    is_lost = condition.count_against(count) > condition.count_allowed(count.total + rest)
    assert is_lost is (condition.judge(count) is _FAILED)


@given(_conditions, st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_what_was_measured_under_strain_only_takes_failures_back(
    condition: Condition, hits: int, misses: int, rest: int, strained: int
) -> None:
    """A worker that is short of processor time makes figures worse, never better."""
    calm = HitCount(hits=hits, total=hits + misses, rest=rest)
    movable = min(strained, hits if condition.comparison.is_upper else misses)
    strain = HitCount(hits=hits, total=hits + misses, rest=rest, strained=movable)
    verdict = condition.judge(strain)
    assert verdict is condition.judge(calm) or (condition.judge(calm), verdict) == (_FAILED, _UNDECIDED)


def test_a_share_is_lost_and_won_at_a_definite_moment() -> None:
    """99 % of 1,000 are lost with the eleventh that is not among them, and won with the 990th that is."""
    cases: list[tuple[int, int, int, ThresholdVerdict]] = [
        (0, 0, 1000, _UNDECIDED),
        (0, 10, 990, _UNDECIDED),
        (0, 11, 989, _FAILED),
        (989, 989, 11, _UNDECIDED),
        (990, 990, 10, _PASSED),
        (990, 1000, 0, _PASSED),
        (989, 1000, 0, _FAILED),
        (0, 0, 0, _UNDECIDED),
    ]
    for hits, total, rest, verdict in cases:
        condition = Condition(ComparisonOperator.AT_LEAST, Fraction(99, 100), is_share=True)
        assert condition.judge(HitCount(hits=hits, total=total, rest=rest)) is verdict
    # What nobody knows the result of counts as whichever is asked for.
    count = HitCount(hits=94, total=100, unknown=5)
    verdicts = [
        Condition(ComparisonOperator.AT_LEAST, Fraction(percent, 100), is_share=True).judge(count)
        for percent in (94, 96, 100)
    ]
    assert verdicts == [_PASSED, _UNDECIDED, _FAILED]

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import fractions

from oku_core.schedule.stage import ConcurrencyPlan, Stage, share_of

RATES = fractions(0, 1000)
STAGES = st.builds(Stage, st.just("soak"), fractions(Fraction(1, 100), 100), RATES, RATES)


@given(stage=STAGES, data=st.data())
def test_a_stage_that_is_cut_stays_the_same_line(stage: Stage, data: st.DataObject) -> None:
    """Both parts keep its name, its slope and its levels, and their areas are its area."""
    at = stage.duration * data.draw(st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
    before, after = stage.cut(at)
    assert (before.name, after.name) == ("soak", "soak")
    assert before.duration + after.duration == stage.duration
    assert (before.begin, before.end, after.end) == (stage.begin, after.begin, stage.end)
    assert before.slope == after.slope == stage.slope
    assert before.area == stage.area_after(at)
    assert before.area + after.area == stage.area


@pytest.mark.parametrize(("duration", "begin", "end"), [(0, 1, 1), (1, -1, 1), (1, 1, -1)])
def test_a_stage_takes_time_and_has_no_rate_below_0(duration: int, begin: int, end: int) -> None:
    """The spec refuses such stages in the words of its user; here they are defects."""
    with pytest.raises(ValueError, match=r"^a stage of "):
        Stage("soak", Fraction(duration), Fraction(begin), Fraction(end))


def build_plan(*shape: tuple[int, int, int]) -> ConcurrencyPlan:
    """A plan of stages, each a duration and the levels at its ends."""
    return ConcurrencyPlan(Stage("", *map(Fraction, stage)) for stage in shape)


@pytest.mark.parametrize(
    ("time_s", "limit"),
    [
        (-1, 0), (0, 0), (0.14, 0), (Fraction("0.15"), 1), (30, 100), (60, 200), (100, 200), (659.9, 200),
        (675, 100), (700, 0),
    ],
)  # fmt: skip
def test_the_limit_follows_the_stages(time_s: float | Fraction, limit: int) -> None:
    """Up in a minute, ten minutes at 200, down in half a minute; halves are rounded up."""
    plan = build_plan((60, 0, 200), (600, 200, 200), (30, 200, 0))
    assert plan.duration_s == 690
    assert plan.find_limit(time_s) == limit


def test_a_step_is_a_step() -> None:
    """At the border of two stages the later one counts."""
    plan = build_plan((1, 5, 5), (1, 8, 8))
    assert [plan.find_limit(time_s) for time_s in (0.999, 1, 2)] == [5, 8, 8]


@given(total=st.integers(0, 1000), of=st.integers(1, 100))
def test_shares_sum_to_the_total(total: int, of: int) -> None:
    """And none is more than one larger than another."""
    shares = [share_of(total, rank, of) for rank in range(of)]
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1

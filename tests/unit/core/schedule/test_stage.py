from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import fractions

from oku_core.schedule.stage import Stage

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

"""What a run that is bounded by time asks of its workers at each time."""

import math

from hypothesis import given
from hypothesis import strategies as st

from oku_core.messaging.share import HeldShare
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.spec import OPEN_END, Spec
from oku_core.spec.values.load_values import StageText
from oku_workers.runs.run_pace import RunTime, build_time_plan

RAMP = Spec(
    stages=(StageText("10s:0..100"), StageText("20s:100"), StageText("10s:0")),
    requests=OPEN_END,
    concurrency=100,
)
ALL = HeldShare(1, ((0, 1),))
TIMED = Spec(duration_s=60.0, requests=OPEN_END, concurrency=8, warm_up_s=10.0)


@given(time_s=st.floats(0.0, 39.999), workers=st.integers(1, 30))
def test_the_workers_have_together_what_the_stages_ask_for(time_s: float, workers: int) -> None:
    """At each time, to the last one."""
    plan = build_time_plan(RAMP)
    shares = [plan.find_concurrency(time_s, HeldShare(1, ((rank, workers),))) for rank in range(workers)]
    assert sum(shares) == plan.find_concurrency(time_s, ALL)
    assert max(shares) - min(shares) <= 1


def test_a_ramp_is_a_line_and_has_phases() -> None:
    """There is nothing in flight before it and behind it."""
    for time_s, expected in [(-1.0, 0), (0.0, 0), (5.0, 50), (10.0, 100), (25.0, 100), (35.0, 50), (40.0, 0)]:
        assert build_time_plan(RAMP).find_concurrency(time_s, ALL) == expected
    assert build_time_plan(TIMED).find_concurrency(20.0, ALL) == 8
    # Without a share a worker has nothing in flight, and of two places the smaller share.
    for spec, most in ((RAMP, 50), (TIMED, 4)):
        assert build_time_plan(spec).find_concurrency(20.0, HeldShare()) == 0
        assert build_time_plan(spec).find_concurrency(20.0, HeldShare(2, ((0, 1), (1, 2)))) == most
    # Phases follow each other. A warm-up is one, and each stage is one.
    timed, ramp = build_time_plan(TIMED), build_time_plan(RAMP)
    assert [timed.find_phase(time_s) for time_s in (0.0, 9.99, 10.0, 99.0)] == ["warm-up"] * 2 + ["main"] * 2
    assert [ramp.find_phase(time_s) for time_s in (-1.0, 9.99, 10.0, 30.0)] == [
        "stage-1", "stage-1", "stage-2", "stage-3",
    ]  # fmt: skip


def test_the_time_of_a_run_is_that_of_its_activity() -> None:
    """A run that was paused after 20 s has 40 s left; before its period nothing is sent."""
    time = RunTime(build_time_plan(TIMED), ActivePeriod(1000.0, 20.0))
    assert (time.measure_s(999.9), time.measure_s(1000.0), time.measure_s(1040.0)) == (-math.inf, 20.0, 60.0)
    assert (time.find_next_change(900.0), time.find_next_change(1001.0)) == (1000.0, 1040.0)
    assert time.find_next_change(1040.0) == math.inf

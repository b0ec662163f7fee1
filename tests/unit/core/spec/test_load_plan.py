from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.load import build_schedule
from oku_core.spec.load_plan import build_load_plan, read_clock_s
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec


def read(**values: object) -> Spec:
    """Read a spec from its keys."""
    return parse_spec(Source("spec", values))


@dataclass(frozen=True)
class Period:
    """A period in which a clock goes on from `offset_s` for `length_s`."""

    starts_at: float
    offset_s: float
    length_s: float

    def measure_s(self, now: float) -> float:
        """What the clock says."""
        return self.offset_s + min(self.length_s, max(0.0, now - self.starts_at))


@given(cuts=st.lists(st.floats(0, 12), max_size=20), arrivals=st.sampled_from(["even", "poisson"]))
def test_all_parts_of_the_time_sum_to_all_requests(cuts: list[float], arrivals: str) -> None:
    """However the time is cut."""
    spec = read(stages=["3s:0..7/s", "8s:33/s"], arrivals=arrivals)
    times = [0.0, *sorted(cuts), 12.0]
    plan = build_load_plan(spec)
    parts = [plan.count(since, until) or 0 for since, until in pairwise(times)]
    assert sum(parts) == spec.requests


def test_the_plan_of_a_part_of_the_time_is_what_the_rate_makes_in_it() -> None:
    """A ramp makes more of the later seconds; before the start and behind the end there is nothing."""
    plan = build_load_plan(read(stages=["4s:0..80/s", "1m:80/s"]))
    assert [plan.count(second, second + 1) for second in range(-1, 5)] == [0, 10, 30, 50, 70, 80]
    assert plan.count(63, 64) == 80
    assert plan.count(64, 70) == 0
    # Random arrivals are planned as they were drawn.
    spec = read(rate="100/s", duration="9s", arrivals="poisson", seed=7)
    plan, schedule = build_load_plan(spec), build_schedule(spec)
    planned = [plan.count(second, second + 1) for second in range(9)]
    blocks = [schedule.count_before_block(block) for block in range(10)]
    assert planned == [after - before for before, after in pairwise(blocks)]
    assert len(set(planned)) > 1
    # Nothing is to be sent in stages of nothing.
    plan = build_load_plan(read(stages=["2s:9/s", "1s:0..0/s", "2s:0..0/s", "2s:0..4/s"]))
    wanted = [plan.wants_load(at / 2, at / 2 + 1) for at in range(12)]
    assert wanted == [True, True, True, True, False, False, False, False, False, True, True, True]
    closed = build_load_plan(read(stages=["2s:9", "1s:0..0"]))
    assert [closed.wants_load(at, at + 1) for at in range(3)] == [True, True, False]
    assert build_load_plan(read(requests=9)).wants_load(0, 1)
    # A time may lie in several phases. The end of a phase is not in it.
    plan = build_load_plan(read(stages=["a=1500ms:9/s", "b=200ms:9/s", "c=2s:9/s"]))
    assert [plan.list_phases(at, at + 1) for at in range(5)] == [
        ["a"], ["a", "b", "c"], ["c"], ["c"], ["c"]
    ]  # fmt: skip
    assert plan.list_phases(0.5, 1.5) == ["a"]


def test_what_a_plan_knows_depends_on_the_load() -> None:
    """Requests are sent as they are answered."""
    assert build_load_plan(read(duration="5s")).count(0, 1) is None
    assert build_load_plan(Spec()).count(0, 1) is None
    # What is unused is what a time left of a number.
    assert build_load_plan(read(duration="5s", requests=100)).find_unused(60) == 40
    assert build_load_plan(read(duration="5s")).find_unused(60) is None
    assert build_load_plan(read(rate="10/s", duration="5s")).find_unused(50) is None
    # Runs that end after a time have a length. So have those with a rate.
    assert build_load_plan(read(duration="5s", requests=100)).length_s == 5.0
    assert build_load_plan(read(rate="10/s", requests=25)).length_s == 2.5
    assert build_load_plan(Spec()).length_s is None
    # A phase goes to its end.
    plan = build_load_plan(read(duration="10s", warm_up="3s"))
    assert [plan.find_phase(at) for at in (0.0, 2.9, 3.0, 9.9, 12.0)] == [*["warm-up"] * 2, *["main"] * 3]
    assert build_load_plan(Spec()).find_phase(5.0) == ""
    # A phase has time left unless only the last request ends it.
    plan = build_load_plan(read(requests=100, warm_up="3s"))
    assert [plan.measure_left_s(at) for at in (0.0, 2.5, 3.0)] == [3.0, 0.5, None]
    assert build_load_plan(read(duration="10s")).measure_left_s(11.0) == 0.0


def test_a_clock_stands_still_between_periods() -> None:
    """It says nothing before the first, and goes on in the next with what that begins with."""
    periods = [Period(10.0, 0.0, 5.0), Period(100.0, 5.0, 3.0)]
    read_at = (0.0, 10.0, 12.5, 15.0, 99.0, 100.0, 101.0, 200.0)
    assert [read_clock_s(periods, at) for at in read_at] == [0.0, 0.0, 2.5, 5.0, 5.0, 5.0, 6.0, 8.0]
    assert read_clock_s([], 50.0) == 0.0
    # Stages of concurrency say how many are to be in flight.
    plan = build_load_plan(read(stages=["4s:0..10", "1s:10"]))
    assert [plan.find_in_flight(at) for at in (0.0, 2.0, 4.5)] == [0, 5, 10]
    assert build_load_plan(read(stages=["4s:0..10/s"])).find_in_flight(2.0) is None
    assert build_load_plan(read(duration="10s")).find_in_flight(2.0) is None

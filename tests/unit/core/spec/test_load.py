from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.specs import specs

from oku_core.schedule.arrivals import Arrivals
from oku_core.schedule.stage import Stage
from oku_core.spec.load import MAIN, WARM_UP, build_schedule, list_phase_times, list_stages
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec


def read(**values: object) -> Spec:
    """Read a spec from its keys."""
    return parse_spec(Source("spec", values))


def list_lines(spec: Spec) -> list[tuple[object, ...]]:
    """List the stages of a spec as plain values."""
    return [(stage.name, stage.duration, stage.begin, stage.end) for stage in list_stages(spec)]


def test_a_rate_is_one_stage() -> None:
    """It is flat, and lasts as long as the spec says, or until all requests have been sent."""
    assert list_lines(read(rate="5000/s", duration="10m")) == [("", 600, 5000, 5000)]
    assert list_lines(read(rate="3/s", requests=1000)) == [("", Fraction(1000, 3), 3, 3)]


def test_a_stage_begins_where_the_one_before_it_ended() -> None:
    """The first one is flat, and those that say how they begin do so."""
    stages = ["1m:50/s", "1m:0..5000/s", "soak=10m:5000/s", "30s:8000..8000/s", "30s:0/s"]
    assert list_lines(read(stages=stages)) == [
        ("stage-1", 60, 50, 50),
        ("stage-2", 60, 0, 5000),
        ("soak", 600, 5000, 5000),
        ("stage-4", 30, 8000, 8000),
        ("stage-5", 30, 8000, 0),
    ]


def test_stages_of_concurrency_are_linked_in_the_same_way() -> None:
    """Their levels are requests in flight over all workers."""
    assert list_lines(read(stages=["1m:0..200", "10m:200"])) == [
        ("stage-1", 60, 0, 200),
        ("stage-2", 600, 200, 200),
    ]


@pytest.mark.parametrize("values", [{}, {"duration": "10m"}, {"requests": 5}, {"warm-up": "1s"}])
def test_a_constant_concurrency_has_no_stages(values: dict[str, object]) -> None:
    """How many workers there are, and so how many requests are in flight, is not known beforehand."""
    assert list_stages(read(**values)) == ()


def test_a_warm_up_cuts_stages() -> None:
    """All that is before its end has its name, and the lines stay what they are."""
    spec = read(stages=["10s:0..100/s", "10s:100..200/s", "10s:200/s"], **{"warm-up": "15s"})
    assert list_lines(spec) == [
        (WARM_UP, 10, 0, 100), (WARM_UP, 5, 100, 150), ("stage-2", 5, 150, 200), ("stage-3", 10, 200, 200),
    ]  # fmt: skip
    assert [tuple[object, ...](phase) for phase in list_phase_times(spec)] == [
        (WARM_UP, 0, 15), ("stage-2", 15, 20), ("stage-3", 20, 30),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "phases"),
    [
        ({}, [("", 0, None)]),
        ({"duration": "10s"}, [("", 0, 10)]),
        ({"warm-up": "1.5s"}, [(WARM_UP, 0, Fraction(3, 2)), (MAIN, Fraction(3, 2), None)]),
        ({"warm-up": 2, "duration": "10s"}, [(WARM_UP, 0, 2), (MAIN, 2, 10)]),
        ({"warm-up": 2, "rate": "5/s", "duration": "10s"}, [(WARM_UP, 0, 2), (MAIN, 2, 10)]),
        ({"rate": "5/s", "requests": 100}, [("", 0, 20)]),
        ({"stages": ["a=1s:5"], "warm-up": 0.3}, [(WARM_UP, 0, Fraction(3, 10)), ("a", Fraction(3, 10), 1)]),
    ],
)
def test_a_run_has_phases(values: dict[str, object], phases: list[tuple[str, Fraction, Fraction]]) -> None:
    """Its only one has no name unless it is a stage; a warm-up ends at the time that was written."""
    assert list(list_phase_times(read(**values))) == phases


@given(specs())
def test_phases_cover_a_run(spec: Spec) -> None:
    """Each begins where the one before it ended, the last one ends with the run, and no name occurs twice."""
    phases = list_phase_times(spec)
    assert phases[0].begin_s == 0
    assert [phase.begin_s for phase in phases[1:]] == [phase.end_s for phase in phases[:-1]]
    assert phases[-1].end_s == (spec.length_s if spec.is_open or spec.is_timed else None)
    assert len({phase.name for phase in phases}) == len(phases)


@given(specs())
def test_a_spec_with_a_rate_has_a_schedule(spec: Spec) -> None:
    """Its number of requests is the integral of the rate, and the schedule agrees on all that both say."""
    if not spec.is_open:
        return
    schedule = build_schedule(spec)
    assert schedule.requests == spec.requests == floor(sum(stage.area for stage in list_stages(spec)))
    assert schedule.duration_s == spec.length_s
    assert (schedule.arrivals, schedule.seed) == (spec.arrivals, spec.seed or 0)
    times = [(phase.name, phase.begin_s, phase.end_s) for phase in schedule.phases]
    assert times == list(list_phase_times(spec))


def test_arrivals_and_seed_are_those_of_the_spec() -> None:
    """Another seed gives other times."""
    schedule = build_schedule(read(rate="5/s", duration="10s", arrivals="poisson", seed=7))
    assert (schedule.arrivals, schedule.seed) == (Arrivals.POISSON, 7)
    assert schedule.stages == (Stage("", Fraction(10), Fraction(5), Fraction(5)),)


@given(thousandths=st.integers(1, 10**6), rate=st.integers(1, 10**4))
def test_no_request_is_lost_to_rounding(thousandths: int, rate: int) -> None:
    """10 requests per second for 0.3 s are 3, whatever 0.3 is as a float."""
    if requests := thousandths * rate // 1000:
        assert read(rate=rate, duration=thousandths / 1000).requests == requests
        assert read(stages=f"{thousandths}ms:{rate}/s").requests == requests

from fractions import Fraction
from math import floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.specs import specs

from oku_core.schedule.stage import Arrivals, Stage
from oku_core.spec.load import MAIN, WARM_UP, build_schedule, list_phase_times, list_stages
from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.spec import OPEN_END, Spec


def read(**values: object) -> Spec:
    """Read a spec from its keys."""
    return parse_spec(Source("spec", values))


def list_lines(spec: Spec) -> list[tuple[object, ...]]:
    """List the stages of a spec as plain values."""
    return [(stage.name, stage.duration, stage.begin, stage.end) for stage in list_stages(spec)]


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
    # A rate is one stage.
    assert list_lines(read(rate="5000/s", duration="10m")) == [("", 600, 5000, 5000)]
    assert list_lines(read(rate="3/s", requests=1000)) == [("", Fraction(1000, 3), 3, 3)]
    # Stages of concurrency are linked in the same way.
    assert list_lines(read(stages=["1m:0..200", "10m:200"])) == [
        ("stage-1", 60, 0, 200),
        ("stage-2", 600, 200, 200),
    ]
    cases: list[dict[str, object]] = [{}, {"duration": "10m"}, {"requests": 5}, {"warm-up": "1s"}]
    for values in cases:
        # A constant concurrency has no stages.
        assert list_stages(read(**values)) == ()


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


def test_a_warm_up_cuts_stages() -> None:
    """All that is before its end has its name, and the lines stay what they are."""
    spec = read(stages=["10s:0..100/s", "10s:100..200/s", "10s:200/s"], **{"warm-up": "15s"})
    assert list_lines(spec) == [
        (WARM_UP, 10, 0, 100), (WARM_UP, 5, 100, 150), ("stage-2", 5, 150, 200), ("stage-3", 10, 200, 200),
    ]  # fmt: skip
    assert [tuple[object, ...](phase) for phase in list_phase_times(spec)] == [
        (WARM_UP, 0, 15), ("stage-2", 15, 20), ("stage-3", 20, 30),
    ]  # fmt: skip
    # Arrivals and seed are those of the spec. Another seed gives other times.
    schedule = build_schedule(read(rate="5/s", duration="10s", arrivals="poisson", seed=7))
    assert (schedule.arrivals, schedule.seed) == (Arrivals.POISSON, 7)
    assert schedule.stages == (Stage("", Fraction(10), Fraction(5), Fraction(5)),)


@given(thousandths=st.integers(1, 10**6), rate=st.integers(1, 10**4))
def test_no_request_is_lost_to_rounding(thousandths: int, rate: int) -> None:
    """10 requests per second for 0.3 s are 3, whatever 0.3 is as a float."""
    if requests := thousandths * rate // 1000:
        assert read(rate=rate, duration=thousandths / 1000).requests == requests
        assert read(stages=f"{thousandths}ms:{rate}/s").requests == requests


RATE = {"rate": "5000/s", "duration": "10m"}
RAMPS = {"stages": ["1m:0..5000/s", "10m:5000/s", "30s:0/s"]}
IN_FLIGHT = {"stages": ["1m:0..200", "10m:200"]}


def read_rules(values: dict[str, Any], **more: object) -> Spec:
    """Read a spec from its keys."""
    return parse_spec(Source("spec.yaml", values | {key.replace("_", "-"): more[key] for key in more}))


def test_the_number_of_requests_and_the_length_follow_from_the_load() -> None:
    """A rate makes as many as it says; a time alone has no number."""
    cases: list[tuple[dict[str, Any], int]] = [
        (RATE, 3_000_000),
        (RAMPS, 150_000 + 3_000_000 + 75_000),
        ({"rate": "5000/s", "requests": "1M"}, 1_000_000),
        ({"rate": "1/s", "duration": "1.9s"}, 1),
        ({"duration": "10m"}, OPEN_END),
        ({"duration": "10m", "requests": 500}, 500),
        (IN_FLIGHT, OPEN_END),
        (IN_FLIGHT | {"requests": 500}, 500),
        ({"duration": "10m", "url": "http://h/"}, OPEN_END),
        ({"max-rate": "5/s", "url": "http://h/"}, 1000),
    ]
    for values, requests in cases:
        assert read_rules(values).requests == requests
    other_cases: list[tuple[dict[str, Any], int | None]] = [
        (RATE, 600),
        (RAMPS, 690),
        ({"rate": "5000/s", "requests": "1M"}, 200),
        ({"duration": "10m"}, 600),
        (IN_FLIGHT, 660),
        ({}, None),
        ({"max-rate": "5/s"}, None),
    ]
    for values, length_s in other_cases:
        # The length of a run follows from the load.
        assert read_rules(values).length_s == length_s


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RATE, "open"),
        (RAMPS, "open"),
        (IN_FLIGHT, "timed"),
        ({"duration": 5}, "timed"),
        ({"max-rate": 5}, ""),
    ],
)
def test_a_run_is_open_with_a_rate_and_timed_with_a_duration_without_one(
    values: dict[str, Any], kind: str
) -> None:
    """No run is both, and one of a number of requests alone is neither."""
    spec = read_rules(values)
    assert (spec.is_open, spec.is_timed) == (kind == "open", kind == "timed")
    assert spec.has_clock == (kind in ("open", "timed") or spec.warm_up_s is not None)


@pytest.mark.parametrize(
    ("values", "concurrency", "windows"),
    [
        (RATE, 10_000, [10_000, 5000, 3334]),
        (RAMPS, 10_000, [10_000, 5000, 3334]),
        ({"rate": "40/h", "duration": "1h"}, 1, [1, 1, 1]),
        (IN_FLIGHT, 200, [200, 100, 67]),
        (RATE | {"concurrency": 70}, 70, [70, 35, 24]),
        ({"duration": "10m"}, 100, [100, 50, 34]),
        ({}, 100, [100, 50, 34]),
    ],
)
def test_the_window_of_a_worker_follows_from_the_load(
    values: dict[str, Any], concurrency: int, windows: list[int]
) -> None:
    """With a rate, what it sends in 2 s may be in flight; workers share it out. A default is not written."""
    spec = read_rules(values)
    assert spec.concurrency == concurrency
    assert [spec.find_window(workers) for workers in (1, 2, 3)] == windows
    follows = bool(list_stages(spec)) and "concurrency" not in values
    assert ("concurrency" in build_mapping(spec)) == (not follows)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"rate": "5000/s"}, "rate: 5000/s has no end: give duration or requests as well"),
        (RATE | RAMPS, "rate: cannot be combined with stages, which have their own rates"),
        (RAMPS | {"duration": 5}, "duration: cannot be combined with stages, which have their own durations"),
        (
            {"stages": ["1m:0..200", "1m:5/s"]},
            "stages: 1m:5/s is a rate and 1m:0..200 a number in flight; all stages must be of one kind",
        ),
        (IN_FLIGHT | {"concurrency": 5}, "concurrency: cannot be combined with stages of concurrency"),
        (RATE | {"range-size": 5}, "range-size: cannot be combined with a rate"),
        (RAMPS | {"range-size": 5}, "range-size: cannot be combined with a rate"),
        (RATE | {"max-rate": 5}, "max-rate: cannot be combined with a rate"),
        (RATE | {"requests": 7}, "requests: 7 contradicts rate and duration, which make 3000000"),
        (RAMPS | {"requests": 7}, "requests: 7 contradicts stages, which make 3225000"),
        ({"arrivals": "poisson"}, "arrivals: applies only to runs with a rate"),
        (IN_FLIGHT | {"late": "send"}, "late: applies only to runs with a rate"),
        ({"rate": "1/h", "duration": "59m"}, "rate: 1/h in 59 min 00 s does not make a single request"),
        ({"stages": "59m:1/h"}, "stages: 59m:1/h does not make a single request"),
        (
            {"rate": "1G/s", "duration": "20d"},
            "rate: 1G/s in 480 h 00 min makes more than 1_000_000_000_000_000 requests",
        ),
        (
            {"rate": "1/h", "requests": "1M"},
            "rate: with 1/h for 1000000 requests the run would last longer than 30d",
        ),
        (
            {"stages": ["20d:1/s", "11d:1/s"]},
            "stages: with 20d:1/s, 11d:1/s the run would last longer than 30d",
        ),
        ({"stages": ["20d:1", "11d:1"]}, "stages: with 20d:1, 11d:1 the run would last longer than 30d"),
        ({"stages": ["1m:0"]}, "stages: nothing is ever sent"),
        ({"stages": ["a=1m:1", "a=1m:1"]}, "stages: two stages are called a"),
        ({"stages": ["stage-2=1m:1", "1m:1"]}, "stages: two stages are called stage-2"),
        ({"stages": ["warm-up=1m:1"]}, "stages: warm-up is the name of another phase"),
        (RATE | {"warm-up": "10m"}, "warm-up: 600s is not shorter than the run, which lasts 600s"),
        ({"duration": 1, "warm-up": 2}, "warm-up: 2s is not shorter than the run, which lasts 1s"),
        (
            {"rate": "5000/s", "requests": "1M", "warm-up": "5m"},
            "warm-up: 300s is not shorter than the run, which lasts 200s",
        ),
    ],
)
def test_keys_that_contradict_each_other_are_told(values: dict[str, Any], fault: str) -> None:
    """The error is one line that names the key to blame; the flag is named where that was given."""
    with pytest.raises(SpecError) as caught:
        read_rules(values)
    assert str(caught.value) == f"spec.yaml: {fault}"


def test_numbers_that_agree_are_no_contradiction() -> None:
    """A stored spec says the number of its requests as well."""
    assert read_rules(RATE, requests="3M") == read_rules(RATE)
    assert read_rules(RAMPS, requests=3_225_000) == read_rules(RAMPS)
    # An error names the flag. `stages` in a file is `--stage` on the command line.
    with pytest.raises(SpecError, match=r"^--stage: two stages are called a$"):
        parse_spec(Source(None, {"stages": ("a=1m:1", "a=1m:1")}))
    # A warm up needs no end that is known.
    assert read_rules({"warm_up": "30s"}).warm_up_s == 30.0
    # Without keepalive the target is told.
    assert read_rules({"keepalive": False}).headers == ("Connection: close",)
    assert read_rules({"keepalive": False, "header": ["A: b", "connection: Close"]}).headers[1:] == (
        "connection: Close",
    )
    with pytest.raises(SpecError, match=r"^spec\.yaml: header: the header Connection contradicts keepalive$"):
        read_rules({"keepalive": False, "header": "Connection: keep-alive"})

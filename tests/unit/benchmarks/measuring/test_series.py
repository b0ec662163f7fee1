import time

import pytest

from oku_benchmarks.measuring.observer import Observation
from oku_benchmarks.measuring.series import build_series, measure_growth_mb
from oku_benchmarks.measuring.vitals import Vitals
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.summary.tick import Tick


def build_sample(at: float, sent: int, **sizes_mb: float) -> Observation:
    """A look; `sizes_mb` is the memory of each process."""
    vitals = {name: Vitals(cpu_s=0.0, rss_mb=size, peak_rss_mb=size) for name, size in sizes_mb.items()}
    return Observation(at=at, sent=sent, pids=dict.fromkeys(vitals, 1), vitals=vitals)


def build_tick(at: float, in_flight: int) -> Tick:
    """A tick; the rest does not matter."""
    sample = Sample(
        at=at, seconds=1.0, requests_total=0, accounted=0, leased=0, pending=0, done=0, resent_at_most=0,
        workers=0, in_flight=in_flight,
    )  # fmt: skip
    return Tick(run="r", state=RunState.RUNNING, sample=sample)


def test_a_series_goes_from_the_first_request_to_the_last() -> None:
    """The start-up before it and the shutdown after it are not part of the series."""
    samples = [
        build_sample(0.0, 0), build_sample(2.0, 10), build_sample(4.0, 30), build_sample(6.0, 50),
        build_sample(8.0, 50), build_sample(10.0, 50),
    ]  # fmt: skip
    series = build_series(samples, [], longest_step_s=2.0)
    assert series.rates_rps == [10.0, 10.0]
    assert series.step_s == 2.0


def test_a_process_that_is_not_there_has_no_memory() -> None:
    """A killed process leaves a gap, not a zero."""
    samples = [
        build_sample(0.0, 1, a=5, b=7), build_sample(2.0, 2, a=5), build_sample(4.0, 3, a=6, b=3),
    ]  # fmt: skip
    assert build_series(samples, [], longest_step_s=2.0).memory_mb == {"a": [5, 6], "b": [None, 3]}


def test_in_flight_is_the_mean_of_the_ticks_of_a_step() -> None:
    """A step without a tick has no value: the coordinator was not there to report one."""
    wall_s = time.time() - time.monotonic()
    samples = [build_sample(at, int(at) + 1) for at in (0.0, 2.0, 4.0)]
    ticks = [build_tick(wall_s + 0.5, 10), build_tick(wall_s + 1.5, 20)]
    assert build_series(samples, ticks, longest_step_s=2.0).in_flight == [15.0, None]


def test_a_long_run_is_thinned_out() -> None:
    """An hour and a half at two seconds a look has 400 points."""
    samples = [build_sample(2.0 * look, look + 1) for look in range(2700)]
    assert len(build_series(samples, [], longest_step_s=2.0).rates_rps) == 400


@pytest.mark.parametrize(
    ("memory_mb", "growth_mb"),
    [
        ([50.0, *[60.0] * 18, 61.0, 61.5], 1.2),
        ([None, 60.0, 60.0, 60.0], 0.0),
        ([60.0] * 10 + [None], None),
    ],
)
def test_growth_is_the_last_tenth_beyond_the_second(
    memory_mb: list[float | None], growth_mb: float | None
) -> None:
    """What a process takes as it starts is not growth; a process that is gone at the end has no growth to
    report.
    """
    assert measure_growth_mb(memory_mb) == growth_mb

import math
from random import Random

import pytest
from tests.kit.runs.seconds import START, draw_seconds, make_second

from oku_core.accounting.measured_time import Time
from oku_core.spec.load import WARM_UP
from oku_core.statistics.spread import TooLittleError, build_intervals, find_interval, measure_spread
from oku_core.summary.latency_summary import build_latency_summary


@pytest.mark.heavy
def test_most_intervals_hold_what_they_are_of() -> None:
    """With neighbouring seconds alike, 95 % should; of 20 minutes drawn here, at least 17 do."""
    held = 0
    for seed in range(20):
        samples, whole = draw_seconds(60, seed=seed, requests=25, wave=0.1)
        figures = build_latency_summary(whole)
        interval = build_intervals(measure_spread(samples, Time.LATENCY, whole.total), figures).p50
        assert interval is not None
        held += interval[0] <= 20.0 <= interval[1]
    assert held >= 17


@pytest.mark.parametrize(
    ("seconds", "requests", "message"),
    [
        (29, 2900, "has 29 s of samples, 30 s are needed"),
        (40, 8000, "has samples that show 50% of its answers"),
        (0, 0, "has 0 s of samples"),
    ],
)
def test_too_little_is_said(seconds: int, requests: int, message: str) -> None:
    """A sentence without its subject."""
    samples, _ = draw_seconds(seconds, seed=0)
    with pytest.raises(TooLittleError, match=message):
        measure_spread(samples, Time.LATENCY, requests)


def test_an_interval_is_no_finer_than_what_seconds_know() -> None:
    """Their latencies are known to 1 part in 32."""
    samples = [make_second(START + place, [20_000] * 200) for place in range(1, 61)]
    _, whole = draw_seconds(1, seed=0, requests=1000)
    spread = measure_spread(samples, Time.LATENCY, 12_000)
    figures = build_latency_summary(whole)
    interval = build_intervals(spread, figures).p90
    assert interval is not None
    assert figures.p90 is not None
    assert interval[0] == pytest.approx(figures.p90 * 64 / 65, abs=1e-3)
    assert interval[1] == pytest.approx(figures.p90 * 65 / 64, abs=1e-3)
    # A quantile with few requests above it has no interval. Of 3,000 requests, three lie above p99.9.
    samples, whole = draw_seconds(30, seed=0)
    spread = measure_spread(samples, Time.LATENCY, whole.total)
    assert list(spread.deviations) == ["p50", "p90", "p95", "p99"]
    assert build_intervals(spread, build_latency_summary(whole)).p99_9 is None
    # The warm up is left out. It is not in the figures either.
    warm_up, _ = draw_seconds(30, seed=1, median_us=900_000, phase=WARM_UP)
    samples, whole = draw_seconds(40, seed=2)
    assert measure_spread([*warm_up, *samples], Time.LATENCY, whole.total) == measure_spread(
        samples, Time.LATENCY, whole.total
    )
    # Few blocks stretch an interval.
    random = Random(0)
    deviations = [random.gauss(0, 1) for _ in range(1000)]
    wide, narrow = find_interval(deviations, 0.05, 5), find_interval(deviations, 0.05, 1e9)
    assert wide[1] / narrow[1] == pytest.approx(2.571 / 1.960, rel=0.01)
    assert math.isclose(narrow[0], -1.96, abs_tol=0.2)

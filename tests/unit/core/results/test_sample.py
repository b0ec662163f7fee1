from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.histograms import make_latency
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HistogramSnapshot, coarsen
from oku_core.accounting.measured_time import Time
from oku_core.results.sample import (
    LIVE_QUANTILES,
    QUANTILES,
    Sample,
    choose_step_s,
    decode_kept,
    encode_kept,
    merge_samples,
    merge_steps,
)
from oku_core.results.sample import build_sample as build

ONE_MS = make_latency([1000])


def build_sample(at: float, **changes: Any) -> Sample:
    """Build a second of a run in which one request was answered, apart from `changes`."""
    latency = changes.pop("latency", ONE_MS)
    values: dict[str, Any] = {
        "at": at, "seconds": 1.0, "requests_total": 100, "accounted": 10, "leased": 20, "pending": 70,
        "done": 15, "resent_at_most": 0, "in_flight": 5, "workers": 2, "outcomes": make_counts(1),
        "bytes_received": 13, "lag_s": 0.01, "times": {Time.LATENCY: latency},
    }  # fmt: skip
    return build(**values | changes)


def test_a_merged_sample_counts_what_its_parts_counted() -> None:
    """Positions are those at the end, counts are summed, and levels are averaged over time."""
    first = build_sample(
        10.0, in_flight=10, lag_s=0.5, times={Time.LATENCY: make_latency([1000, 2000])}, accounted=1
    )
    second = build_sample(
        13.0,
        seconds=3.0,
        in_flight=2,
        outcomes=make_counts(unexpected_status=2, connect_error=1),
        accounted=5,
    )
    merged = merge_samples([first, second])
    assert (merged.at, merged.seconds, merged.accounted) == (13.0, 4.0, 5)
    assert merged.outcomes == make_counts(1, unexpected_status=2, connect_error=1)
    assert merged.in_flight == pytest.approx(4.0)
    assert merged.bytes_received == 26
    assert merged.lag_s == 0.5
    assert merged.histogram(Time.LATENCY).total == 3
    assert merged.requests_ended == 4
    assert merged.rate_rps == 1.0
    # A merged sample has all three distributions.
    first = build_sample(
        1.0,
        requests_sent=3,
        times={Time.RESPONSE_TIME: make_latency([5000]), Time.LATENESS: make_latency([10])},
    )
    second = build_sample(2.0, requests_sent=4, times={Time.RESPONSE_TIME: make_latency([9000] * 9)})
    merged = merge_samples([first, second])
    assert (
        merged.requests_sent,
        merged.histogram(Time.RESPONSE_TIME).total,
        merged.histogram(Time.LATENESS).total,
    ) == (7, 10, 1)
    assert (first.response_time_p50_ms, merged.response_time_p50_ms) == (5.0, 9.0)
    assert (merged.lateness_p99_ms, merged.lateness_max_ms, second.lateness_p99_ms) == (0.01, 0.01, None)
    # Quantiles of a merged sample are of all its latencies.
    slow = build_sample(1.0, times={Time.LATENCY: make_latency([9000] * 9)})
    fast = build_sample(2.0, times={Time.LATENCY: make_latency([100] * 91)})
    merged = merge_samples([slow, fast])
    assert (merged.p50_ms, merged.p90_ms, merged.p99_ms, merged.max_ms) == (0.1, 0.1, 9.0, 9.0)


@given(st.lists(st.integers(1, 10**8), min_size=1), st.lists(st.integers(1, 10**8), min_size=1))
def test_no_quantile_is_above_the_largest_value(first: list[int], second: list[int]) -> None:
    """Kept samples have coarse buckets, and the largest value of each exactly."""
    samples = []
    for at, values in ((1.0, first), (2.0, second)):
        exact = make_latency(values)
        sample = build_sample(at, times={Time.LATENCY: exact, Time.LATENESS: exact})
        samples.append(
            msgspec.structs.replace(
                sample, times={Time.LATENCY: coarsen(exact), Time.LATENESS: coarsen(exact)}
            )
        )
    merged = merge_samples(samples)
    assert merged.max_ms == max(sample.max_ms or 0.0 for sample in samples)
    for names in (tuple(QUANTILES), LIVE_QUANTILES[2 * len(QUANTILES) :]):
        figures = [getattr(merged, name) for name in names]
        assert figures == sorted(figures)


def test_samples_without_answers_have_no_quantiles() -> None:
    """This holds for merged samples too."""
    empty = build_sample(1.0, times={Time.LATENCY: HistogramSnapshot()})
    assert empty.p50_ms is None
    assert merge_samples([empty, build_sample(2.0, times={Time.LATENCY: HistogramSnapshot()})]).max_ms is None
    assert merge_samples([empty, build_sample(2.0)]).max_ms == 1.0
    # What nobody saw counts in no mean.
    unseen = build_sample(2.0, in_flight=None, workers=None, lag_s=None)
    merged = merge_samples([build_sample(1.0, in_flight=8, workers=2, lag_s=0.3), unseen])
    assert (merged.in_flight, merged.workers, merged.lag_s, merged.requests_ended) == (8, 2, 0.3, 2)
    merged = merge_samples([unseen, msgspec.structs.replace(unseen, at=3.0)])
    assert (merged.in_flight, merged.workers, merged.lag_s) == (None, None, None)


@given(st.integers(11, 300), st.integers(0, 10**9), st.floats(0.3, 3.0))
def test_a_long_history_is_merged_into_half_of_the_room(count: int, begin: int, step_s: float) -> None:
    """No count is lost, and the order and the total length stay the same."""
    samples = [build_sample(begin + step_s * place, seconds=step_s) for place in range(count)]
    thin = merge_steps(samples, choose_step_s([sample.at for sample in samples], most=10))
    assert len(thin) <= 5
    assert [sample.at for sample in thin] == sorted({sample.at for sample in thin})
    assert sum(sample.requests_ended for sample in thin) == count
    assert sum(sample.histogram(Time.LATENCY).total for sample in thin) == count
    assert sum(sample.seconds for sample in thin) == pytest.approx(step_s * count)
    assert thin[-1].at == samples[-1].at


def test_merging_again_keeps_what_was_merged_together() -> None:
    """A history that keeps growing is always merged along even steps, each a power of two."""
    samples: list[Sample] = []
    for at in range(1, 1001):
        samples.append(build_sample(float(at)))
        if len(samples) > 16:
            samples = merge_steps(samples, choose_step_s([sample.at for sample in samples], most=16))
    assert sum(sample.requests_ended for sample in samples) == 1000
    assert [sample.seconds for sample in samples] == [128.0] * 7 + [104.0]


def test_what_is_kept_is_read_again() -> None:
    """A sample survives the ledger with all its fields."""
    sample = build_sample(10.0, active_s=7.0, outcomes_so_far=make_counts(15))
    assert decode_kept(encode_kept(sample)) == sample

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.samples import BucketSpan, NativeHistogram

from oku_coordinator.telemetry.prometheus.native_histogram import (
    SCHEMA,
    ZERO_THRESHOLD_S,
    build_native_histogram,
    find_cuts,
)
from oku_core.accounting.histogram import HIGHEST_US, Histogram, bucket_bounds_us

FACTOR = 2.0 ** (1 / 2**SCHEMA)
LATENCIES = st.lists(st.one_of(st.integers(0, 5000), st.integers(0, HIGHEST_US)), max_size=200)


def record(latencies_us: Sequence[int]) -> Histogram:
    """A histogram of these latencies."""
    histogram = Histogram()
    for latency_us in latencies_us:
        histogram.record(latency_us)
    return histogram


def list_buckets(native: NativeHistogram) -> list[tuple[float, int]]:
    """The upper bound in seconds and the count of each bucket that has one, by the rules of Prometheus."""
    spans, deltas = native.pos_spans or (), native.pos_deltas or ()
    indices: list[int] = []
    following = 0
    for span in spans:
        indices += range(following + span.offset, following + span.offset + span.length)
        following += span.offset + span.length
    bounds_s = [2.0 ** (index / 2**SCHEMA) for index in indices]
    return list(zip(bounds_s, accumulate(deltas), strict=True))


@given(LATENCIES, LATENCIES)
def test_each_time_is_in_its_bucket_or_closely_above_it(here_us: list[int], there_us: list[int]) -> None:
    """The bound holds for the count of all times up to any bound; up to 2,047 µs it is exact."""
    native = build_native_histogram([record(here_us), record(there_us)])
    times_us = sorted(here_us + there_us)
    assert native.zero_count == times_us.count(0)
    counted = native.zero_count
    for bound_s, count in list_buckets(native):
        assert count > 0
        assert sum(time_us <= bound_s / FACTOR * 1_000_000 for time_us in times_us) <= counted
        counted += count
        least = sum(time_us <= bound_s * 1_000_000 for time_us in times_us)
        slack = 1 + 1 / 1024 if bound_s > 0.002047 else 1.0
        most = sum(time_us <= bound_s * 1_000_000 * slack for time_us in times_us)
        assert least <= counted <= most
    assert counted == native.count_value == len(times_us)
    assert native.sum_value == pytest.approx(sum(times_us) / 1_000_000)


def test_bounds_belong_to_the_bucket_below_them() -> None:
    """As in Prometheus; those that are whole microseconds are halves and doubles of a second."""
    native = build_native_histogram([record([500_000, 1_000_000, 2_000_000, 3_600_000_000])])
    assert list_buckets(native)[:3] == [(0.5, 1), (1.0, 1), (2.0, 1)]
    assert list_buckets(native)[3][0] == pytest.approx(3600, rel=FACTOR - 1)


def test_buckets_that_follow_each_other_are_one_span() -> None:
    """The others are left out, however many they are."""
    native = build_native_histogram([record([1_000_000] * 3 + [1_020_000] + [4_000_000] * 2)])
    assert native.pos_spans == [BucketSpan(0, 2), BucketSpan(62, 1)]
    assert native.pos_deltas == [3, -2, 1]


def test_less_than_a_microsecond_is_in_the_bucket_of_zero() -> None:
    """Latenesses often are; one microsecond is above its threshold."""
    native = build_native_histogram([record([0, 0, 1])])
    assert (native.zero_count, native.zero_threshold) == (2, ZERO_THRESHOLD_S)
    [(bound_s, count)] = list_buckets(native)
    assert count == 1
    assert bound_s / FACTOR < 0.000001 <= bound_s


@given(st.lists(st.floats(0.000001, 3600)))
def test_cuts_part_what_a_bound_parts(bounds_s: list[float]) -> None:
    """The bucket before a cut begins at or below the bound, that at the cut begins above it."""
    for bound_s, cut in zip(bounds_s, find_cuts(bounds_s), strict=True):
        assert bucket_bounds_us(cut - 1)[0] <= bound_s * 1_000_000 < bucket_bounds_us(cut)[0]

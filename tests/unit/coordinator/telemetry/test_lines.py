from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_coordinator.ledger.records import LeaseRecord
from oku_coordinator.telemetry.lines import (
    BOUNDS_MS,
    build_coverage_lines,
    build_latency_fields,
    build_latency_lines,
    build_range_line,
    build_status_lines,
    build_worker_line,
    cut_parts,
    format_bound,
)
from oku_core.accounting.interval import Slice, SliceState
from oku_core.messaging.lease import Report
from oku_core.messaging.progress import Progress
from oku_core.results.histogram import HIGHEST_US, Histogram, HistogramSnapshot

LATENCIES_US = st.lists(st.integers(0, HIGHEST_US) | st.integers(0, 10_000), max_size=40)


def build_latency(values_us: list[int]) -> HistogramSnapshot:
    """These latencies."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram.build_latency()


def test_a_range_line_says_what_the_report_says(
    cut: Callable[..., LeaseRecord], make_report: Callable[..., Report]
) -> None:
    """What it covers, what came of it, and how long that took."""
    lease = cut(10)
    report = make_report(
        lease, done=8, unfinished=[3], outcomes=[4, 1, 2, 0, 0, 0], latency=build_latency([1000] * 5)
    )
    line = build_range_line(lease.id, report)
    assert (line["lease"], line["worker"], line["start"], line["stop"]) == (lease.id, "w1", 0, 8)
    assert (line["requests"], line["ok"], line["unexpected_status"], line["timeout"]) == (7, 4, 1, 2)
    assert (line["mean_ms"], line["p50_ms"], line["max_ms"]) == (1.0, 1.0, 1.0)
    assert (line["seconds"], line["bytes_received"]) == (1.0, 91)


def test_statuses_have_lines_of_their_own(
    cut: Callable[..., LeaseRecord], make_report: Callable[..., Report]
) -> None:
    """One each, in order."""
    report = make_report(cut(10), statuses={"503": 2, "200": 8})
    assert list(build_status_lines(report)) == [
        {"worker": "w1", "status": "200", "requests": 8},
        {"worker": "w1", "status": "503", "requests": 2},
    ]


def test_nothing_answered_has_no_latency() -> None:
    """The fields are missing."""
    assert build_latency_fields(HistogramSnapshot()) == {}


def test_bounds_rise_by_tenths_of_a_decade_beyond_the_longest_latency() -> None:
    """From 10 µs to more than an hour, as short in text as they can be."""
    assert BOUNDS_MS[0] == 0.01
    assert BOUNDS_MS[-2] * 1000 > HIGHEST_US or BOUNDS_MS[-1] * 1000 > HIGHEST_US
    assert all(1.2 < b / a < 1.3 for a, b in pairwise(BOUNDS_MS))
    assert [format_bound(bound) for bound in BOUNDS_MS[:4]] == ["0.01", "0.0125", "0.016", "0.02"]
    assert [format_bound(bound) for bound in BOUNDS_MS[-3:]] == ["3150000", "4000000", "5000000"]
    assert [float(format_bound(bound)) for bound in BOUNDS_MS] == list(BOUNDS_MS)


@given(LATENCIES_US)
def test_the_buckets_of_a_heatmap_hold_every_latency_once(values_us: list[int]) -> None:
    """Each under the first bound that is not below it, to the width of a histogram bucket."""
    latency = build_latency(values_us)
    lines = list(build_latency_lines(latency))
    bounds = [float(line["le"]) for line in lines]
    assert sum(line["requests"] for line in lines) == len(values_us)
    assert all(line["requests"] > 0 for line in lines)
    assert bounds == sorted(set(bounds))
    for bound in bounds:
        within = sum(line["requests"] for line in lines if float(line["le"]) <= bound)
        assert within >= sum(value_us / 1000 <= bound for value_us in values_us)
        assert within <= sum(value_us / 1000 * (1 - 1 / 1024) <= bound for value_us in values_us)


@given(st.integers(1, 10**12), st.integers(1, 60))
def test_parts_are_equal_and_cover_the_request_space(requests: int, parts: int) -> None:
    """To one request."""
    cuts = cut_parts(requests, parts)
    assert cuts[0][0] == 0
    assert cuts[-1][1] == requests
    assert all(a[1] == b[0] for a, b in pairwise(cuts))
    assert {stop - start for start, stop in cuts} <= {requests // len(cuts), requests // len(cuts) + 1}


@given(st.data(), st.integers(1, 3000))
def test_coverage_counts_every_index_once(data: Any, requests: int) -> None:
    """Whatever the slices, each part has as many as there are in it."""
    edges = sorted({0, requests, *data.draw(st.lists(st.integers(0, requests), max_size=12))})
    states = [data.draw(st.sampled_from(SliceState)) for _ in edges[1:]]
    slices = [Slice(a, b, state) for a, b, state in zip(edges, edges[1:], states, strict=False)]
    again = [(edges[0], edges[1]), (edges[-2], edges[-1])]
    kinds = [next(piece.state for piece in slices if piece.stop > index) for index in range(requests)]
    for line in build_coverage_lines(slices, again, requests):
        part = kinds[line["start"] : line["stop"]]
        assert {state: line[state] for state in SliceState} == {
            state: part.count(state) for state in SliceState
        }
        expected = sum(max(0, min(b, line["stop"]) - max(a, line["start"])) for a, b in again)
        assert line["again"] == expected


@pytest.mark.parametrize("requests", [1, 49, 50, 51])
def test_a_small_space_has_as_many_parts_as_requests(requests: int) -> None:
    """Fifty at most."""
    lines = list(build_coverage_lines([Slice(0, requests, SliceState.PENDING)], [], requests))
    assert len(lines) == min(requests, 50)
    assert [line["part"] for line in lines] == [f"{part:02d}" for part in range(len(lines))]


def test_a_worker_line_is_of_several_seconds() -> None:
    """Rates are per second of them; what was said last is how it stands."""
    latest = Progress(
        worker="w1", incarnation="b", at=1.0, in_flight=7, rss_mb=81.04, latency=build_latency([2000])
    )
    line = build_worker_line(latest, 4.0, 100, 0.5, 0.0123)
    assert (line["requests"], line["rate_rps"], line["in_flight"]) == (100, 25.0, 7)
    assert (line["p50_ms"], line["p99_ms"], line["rss_mb"]) == (2.0, 2.0, 81.0)
    assert "p50_ms" not in build_worker_line(
        msgspec.structs.replace(latest, latency=HistogramSnapshot()), 1, 0, 0, 0
    )

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.iterations import build_inner
from tests.kit.histograms import make_latency
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HIGHEST_US
from oku_core.accounting.lease_state import LeaseSpan, LeaseState
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import LeaseFigures, Part
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.results.lines import (
    BOUNDS_MS,
    RunHead,
    TimeProgress,
    build_inner_range_lines,
    build_late_tick_line,
    build_latency_lines,
    build_range_lines,
    build_status_lines,
    build_tick_line,
    build_unsent_line,
    build_worker_line,
    format_bound,
)
from oku_core.results.sample import Sample, build_sample

HEAD = RunHead("http://shop.test/{i}", "100 requests")
LATENCIES_US = st.lists(st.integers(0, HIGHEST_US) | st.integers(0, 10_000), max_size=40)


FIGURES = LeaseFigures(
    started_at=10.0, ended_at=11.0, cpu_s=0.5, peak_rss_mb=80.0, max_lag_s=0.01, busy_share=0.7
)
CLOSED = LeaseSpan(
    id="l1", worker="w1", start=0, stop=8, state=LeaseState.CLOSED, reason="", cut_at=0.0, closed_at=1.0
)


def test_statuses_have_lines_of_their_own() -> None:
    """There is one line for each status code of each part, in order."""
    parts = [Part(statuses={"503": 2, "200": 8}), Part(name="cart", statuses={"200": 1})]
    assert list(build_status_lines("w1", parts)) == [
        {"worker": "w1", "status": "200", "requests": 8},
        {"worker": "w1", "status": "503", "requests": 2},
        {"worker": "w1", "target": "cart", "status": "200", "requests": 1},
    ]


def test_the_line_of_a_tick_has_the_fields_of_its_sample() -> None:
    """The fields keep their names, and the line adds the state of the run."""
    sample = build_sample(
        at=1.0, seconds=2.0, requests_total=100, accounted=10, leased=20, pending=70, done=15,
        resent_at_most=0, workers=2, in_flight=4, outcomes=make_counts(3, unexpected_status=1),
        times={Time.LATENCY: make_latency([1000])}, requests_planned=3, phase="soak", clock_bound_s=0.001,
    )  # fmt: skip
    line = build_tick_line(RunState.RUNNING, HEAD, sample)
    counts = {outcome: line[outcome] for outcome in OUTCOMES}
    assert (line["state"], line["target"], line["load"]) == ("running", *HEAD)
    assert list(counts.values()) == sample.outcomes
    names = line.keys() - counts.keys() - {"state", "target", "load"}
    times = {"clock_s", "length_s", "unused"}
    assert all(line[name] is None for name in times)
    names -= times
    assert names == set(Sample.__struct_fields__) - {
        "at",
        "outcomes",
        "outcomes_so_far",
        "times",
    }
    assert {name: line[name] for name in names} == {name: getattr(sample, name) for name in names}
    # A tick of a run without an end in number says how much of its time has passed.
    sample = build_sample(
        at=1.0, seconds=1.0, requests_total=10**15, accounted=10, leased=20, pending=10**15 - 30, done=15,
        resent_at_most=0, workers=2, in_flight=4, outcomes=make_counts(3), times={},
    )  # fmt: skip
    line = build_tick_line(RunState.RUNNING, HEAD, sample, TimeProgress(2.5004, 10.0))
    assert (line["requests_total"], line["pending"], line["accounted"]) == (None, None, 10)
    assert (line["clock_s"], line["length_s"], line["unused"]) == (2.5, 10.0, None)


def test_late_counts_and_unsent_requests_have_lines() -> None:
    """Sums over all lines of a second stay right, and so does what is divided by its length."""
    assert build_late_tick_line(make_counts(3, timeout=1), 2, seconds=0, active_s=4.0004) == {
        "seconds": 0, "active_s": 4.0, "requests_ended": 4, "requests_sent": 2,
        "requests_planned": None, "phase": None, "ok": 3,
        "unexpected_status": 0, "timeout": 1,
        "connect_error": 0, "disconnected": 0, "protocol_error": 0, "not_sent": 0, "lost": 0,
        "failed_check": 0, "exception": 0,
    }  # fmt: skip
    # What was not sent has not ended. It counts in no rate; its outcome is in the line all the same.
    line = build_late_tick_line(make_counts(3, not_sent=5, lost=1), 3, seconds=1, active_s=4.0)
    assert (line["requests_ended"], line["not_sent"], line["lost"]) == (3, 5, 1)
    # The line of what nobody sent names no worker. The coordinator has accounted for it by itself.
    part = Part(phase="soak", outcomes=make_counts(not_sent=4, lost=1), not_sent=[0, 0, 4])
    line = build_unsent_line(part)
    assert (line["phase"], line["requests"], line["not_sent"], line["lost"]) == ("soak", 5, 4, 1)
    assert "worker" not in line
    assert (line["not_sent_in_flight_cap"], line["not_sent_late"], line["not_sent_not_dealt"]) == (0, 0, 4)


def test_a_range_line_says_what_came_of_a_closed_lease() -> None:
    """The line has the range, its outcomes, its latencies and how long it took."""
    part = Part(
        outcomes=make_counts(4, unexpected_status=1, timeout=2),
        statuses={"200": 4, "500": 1},
        bytes_received=91,
        times={Time.LATENCY: make_latency([1000] * 5)},
    )
    (line,) = build_range_lines(CLOSED, FIGURES, [part])
    assert (line["lease"], line["worker"], line["start"], line["stop"]) == ("l1", "w1", 0, 8)
    assert (line["requests"], line["ok"], line["unexpected_status"], line["timeout"]) == (7, 4, 1, 2)
    assert (line["mean_ms"], line["p50_ms"], line["max_ms"]) == (1.0, 1.0, 1.0)
    assert (line["seconds"], line["bytes_received"], line["cpu_s"]) == (1.0, 91, 0.5)
    assert "phase" not in line
    assert "target" not in line
    # Each part of a lease has a range line.
    parts = [
        Part(phase="warm-up", outcomes=make_counts(2)),
        Part(name="cart", outcomes=make_counts(5)),
    ]
    first, second = build_range_lines(CLOSED, FIGURES, parts)
    assert (first["phase"], first["requests"], second["target"], second["requests"]) == (
        "warm-up",
        2,
        "cart",
        5,
    )
    assert first["cpu_s"] + second["cpu_s"] == 0.5
    # Each name of a closed lease has a line.
    lease = LeaseSpan(
        id="l1", worker="w1", start=0, stop=8, state=LeaseState.CLOSED, reason="", cut_at=0.0, closed_at=1.0
    )
    parts = [build_inner("login", [1000, 3000]), build_inner("orders", [], phase="warm-up")]
    login, orders = build_inner_range_lines(lease, parts)
    assert (login["lease"], login["worker"], login["request"], login["phase"]) == ("l1", "w1", "login", None)
    assert (login["requests"], login["ok"], login["bytes_received"], login["max_ms"]) == (2, 2, 20, 3.0)
    assert (orders["request"], orders["phase"], orders["requests"]) == ("orders", "warm-up", 0)
    assert "name" not in login
    # A range line of a run with a rate has causes and what counts from due times.
    part = Part(
        outcomes=make_counts(2, not_sent=3),
        not_sent=[1, 2, 0],
        statuses={"200": 2},
        times={
            Time.LATENCY: make_latency([1000, 1000]),
            Time.RESPONSE_TIME: make_latency([4000, 6000]),
            Time.LATENESS: make_latency([3000, 5000]),
        },
    )
    (line,) = build_range_lines(CLOSED, FIGURES, [part])
    assert (line["not_sent_in_flight_cap"], line["not_sent_late"], line["not_sent_not_dealt"]) == (1, 2, 0)
    assert (line["max_ms"], line["response_time_max_ms"], line["lateness_max_ms"]) == (1.0, 6.0, 5.0)
    (closed,) = build_range_lines(CLOSED, FIGURES, [Part(outcomes=make_counts(2))])
    assert (closed["not_sent_late"], closed["response_time_p99_ms"], closed["lateness_p50_ms"]) == (
        0,
        None,
        None,
    )


def test_bounds_rise_by_tenths_of_a_decade_beyond_the_longest_latency() -> None:
    """The bounds reach from 10 µs to more than an hour, and their text is as short as possible."""
    assert BOUNDS_MS[0] == 0.01
    assert BOUNDS_MS[-2] * 1000 > HIGHEST_US or BOUNDS_MS[-1] * 1000 > HIGHEST_US
    assert all(1.2 < b / a < 1.3 for a, b in pairwise(BOUNDS_MS))
    assert [format_bound(bound) for bound in BOUNDS_MS[:4]] == ["0.01", "0.0125", "0.016", "0.02"]
    assert [format_bound(bound) for bound in BOUNDS_MS[-3:]] == ["3150000", "4000000", "5000000"]
    assert [float(format_bound(bound)) for bound in BOUNDS_MS] == list(BOUNDS_MS)


@given(LATENCIES_US)
def test_the_buckets_of_a_heatmap_hold_every_latency_once(values_us: list[int]) -> None:
    """Each latency counts under the first bound that is not below it, to the width of a histogram bucket."""
    latency = make_latency(values_us)
    lines = list(build_latency_lines(latency))
    bounds = [float(line["le"]) for line in lines]
    assert sum(line["requests"] for line in lines) == len(values_us)
    assert all(line["requests"] > 0 for line in lines)
    assert bounds == sorted(set(bounds))
    for bound in bounds:
        within = sum(line["requests"] for line in lines if float(line["le"]) <= bound)
        assert within >= sum(value_us / 1000 <= bound for value_us in values_us)
        assert within <= sum(value_us / 1000 * (1 - 1 / 1024) <= bound for value_us in values_us)


def test_a_worker_line_is_of_several_seconds() -> None:
    """The rate is per second of that time; the levels are those of the latest progress."""
    done, other = (
        RunProgress(in_flight=7, times={Time.LATENCY: make_latency([2000])}),
        RunProgress(in_flight=50),
    )
    leases = {name: LeaseProgress(0, 1, build_no_counts()) for name in ("r1.1.a", "r1.2.a", "r2.1.a")}
    latest = Progress(
        worker="w1", incarnation="b", at=1.0, rss_mb=81.04, runs={"r1": done, "r2": other}, leases=leases
    )
    line = build_worker_line("r1", latest, 4.0, 100, 0.5, 0.0123)
    assert (line["requests_ended"], line["rate_rps"], line["in_flight"]) == (100, 25.0, 7)
    assert (line["p50_ms"], line["p99_ms"], line["rss_mb"]) == (2.0, 2.0, 81.0)
    assert (line["lateness_p99_ms"], line["clock_bound_s"]) == (None, None)
    assert line["leases"] == 2
    late = msgspec.structs.replace(done, times={Time.LATENESS: make_latency([3000])})
    timed = msgspec.structs.replace(latest, runs={"r1": late}, clock_bound_s=0.0012)
    line = build_worker_line("r1", timed, 4.0, 100, 0.5, 0.0123)
    assert (line["lateness_p99_ms"], line["clock_bound_s"]) == (3.0, 0.0012)
    line = build_worker_line("r3", latest, 1, 0, 0, 0)
    assert (line["p50_ms"], line["in_flight"], line["leases"]) == (None, 0, 0)

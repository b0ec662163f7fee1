"""At any width from 40 columns on, a view shows every number as a whole."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kit.histograms import make_histogram

from oku_cli.live.live_figures import measure_tick_rates
from oku_cli.live.live_view import SeenTick, build_frame
from oku_cli.live.trend import TrendTracker, has_rate
from oku_cli.terminal.layout import FEWEST_COLUMNS
from oku_cli.views.runs_view import ListedRun, build_runs_table
from oku_cli.views.summary_view import build_screen
from oku_core.accounting import hdr
from oku_core.accounting.histogram import HIGHEST_US
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.spec.spec import OPEN_END, Engine
from oku_core.spec.values.load_values import LONGEST_STAGE_NAME
from oku_core.spec.values.quantity import format_bytes, format_duration
from oku_core.summary.latency_summary import LatencySummary, build_latency_summary
from oku_core.summary.request_summary import NotSentCounts, OutcomeCounts, PhaseSummary, TargetSummary
from oku_core.summary.summary import ServersSummary, Summary, WorkerSummary
from oku_core.summary.tick import TargetTick, Tick
from oku_core.summary.validity import Flag, Validity
from oku_core.tables import formatting as f
from oku_core.tables.distribution_tables import build_bars
from oku_core.tables.formatting import format_count
from oku_core.tables.time_tables import LATENCY

Render = Callable[..., list[str]]
WIDTHS = st.integers(FEWEST_COLUMNS, 200)
WHEN = st.integers(0, 10**9)
COUNTS = st.integers(0, 20) | st.integers(0, 10**6) | st.integers(10**14, OPEN_END - 1)
TIMES = st.just(0.0) | st.floats(0.001, 10) | st.floats(10, 1e7)
ANY_CASE = settings(
    max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    """Runs of any size, with each kind of outcome, many statuses, workers and flags."""
    histogram = make_histogram(draw(st.lists(st.integers(1, 3_600_000_000), max_size=20)))
    requests = draw(COUNTS)
    names = st.sampled_from(["worker-1", "oku-workers-7c9d8b6f5-x2x4z", "a"])
    workers = st.builds(
        WorkerSummary, name=names, requests=COUNTS, cpu_s=TIMES, peak_rss_mb=TIMES, lost=st.booleans()
    )
    is_open = draw(st.booleans())
    times_ms, encoded = build_latency_summary(histogram), hdr.encode_base64(histogram)
    counts = st.builds(OutcomeCounts, **dict.fromkeys(OutcomeCounts.__struct_fields__, COUNTS))
    phases = st.builds(
        PhaseSummary, name=st.sampled_from(["main", "x" * LONGEST_STAGE_NAME]), begin_s=TIMES, end_s=TIMES,
        due=COUNTS if is_open else st.none(), requests=COUNTS, completed=COUNTS, outcomes=counts,
        not_sent=st.builds(NotSentCounts), statuses=st.just({}), bytes_received=COUNTS, sent_rps=TIMES,
        completed_rps=TIMES, planned_rps=TIMES if is_open else st.none(), latency_ms=st.just(times_ms),
        response_time_ms=st.just(times_ms), lateness_ms=st.just(times_ms),
    )  # fmt: skip
    targets = st.builds(
        TargetSummary, name=st.sampled_from(["buy", "GET /items/" + "x" * 80]), weight=COUNTS,
        requests=COUNTS, outcomes=counts, not_sent=st.builds(NotSentCounts),
        statuses=st.just({}), bytes_received=COUNTS,
        rate_rps=TIMES, latency_ms=st.just(times_ms), response_time_ms=st.just(times_ms),
        lateness_ms=st.just(times_ms),
    )  # fmt: skip
    due: dict[str, Any] = {
        "not_sent": NotSentCounts(), "response_time_ms": LatencySummary(), "lateness_ms": LatencySummary(),
    }  # fmt: skip
    if is_open:
        due = {
            "planned_rps": draw(TIMES), "not_sent": NotSentCounts(late=draw(COUNTS), not_dealt=draw(COUNTS)),
            "response_time_ms": times_ms, "response_time_histogram": encoded if histogram.total else "",
            "lateness_ms": times_ms,
        }  # fmt: skip
    return Summary(
        run="261122-140408-3psn", name=draw(st.sampled_from(["", "soak", "x" * 100])),
        state=draw(st.sampled_from(RunState)), engine=draw(st.sampled_from(Engine)),
        load=draw(st.sampled_from(["", "0 to 5,000/s over 1 min, 5,000/s for 9 min, 500 to 0/s over 9 s"])),
        requests=requests, accounted=draw(st.integers(0, requests)), resent_at_most=draw(COUNTS),
        outcomes=draw(counts),
        statuses=draw(st.dictionaries(st.sampled_from(["200", "404", "503"]), COUNTS)),
        bytes_received=draw(COUNTS), started_at="2026-02-01T17:05:12Z", ended_at="2026-02-01T17:06:13Z",
        active_s=draw(TIMES), throughput_rps=draw(TIMES), latency_ms=times_ms, histogram=encoded,
        phases=draw(st.lists(phases, max_size=3)), targets=draw(st.lists(targets, max_size=15)),
        **due,
        workers=draw(st.lists(workers, max_size=10)),
        servers=draw(st.none() | st.builds(ServersSummary, served=COUNTS)),
        validity=draw(st.lists(st.builds(
            Validity, flag=st.sampled_from(Flag), detail=st.just("a loop was up to 817 late"),
            requests=COUNTS, share=st.floats(0, 1),
        ), max_size=3)),
    )  # fmt: skip


@st.composite
def ticks(draw: st.DrawFn) -> Tick:
    """Seconds of runs of any size."""
    requests = draw(COUNTS)
    accounted = draw(st.integers(0, requests))
    latencies = make_histogram(draw(st.lists(st.integers(0, HIGHEST_US), max_size=5)))
    sample = Sample(
        at=draw(TIMES), seconds=1.0, requests_total=requests, accounted=accounted, leased=0,
        pending=requests - accounted, done=draw(st.integers(accounted, requests)),
        resent_at_most=draw(COUNTS), active_s=draw(TIMES), rate_rps=draw(TIMES), in_flight=draw(COUNTS),
        outcomes_so_far=draw(st.lists(COUNTS, min_size=len(OUTCOMES), max_size=len(OUTCOMES))),
        times={Time.LATENCY: latencies.build_latency()},
        workers=draw(COUNTS),
    )  # fmt: skip
    counts = st.lists(COUNTS, min_size=len(OUTCOMES), max_size=len(OUTCOMES))
    targets = st.builds(
        TargetTick, name=st.sampled_from(["buy", "GET /items/" + "x" * 80]), outcomes=counts, p50_ms=TIMES,
        p99_ms=TIMES,
    )  # fmt: skip
    tick = Tick(
        run="261122-140408-3psn", state=draw(st.sampled_from(RunState)), sample=sample,
        targets=draw(st.lists(targets, max_size=15)),
    )  # fmt: skip
    return draw(st.sampled_from([tick, _follow_plan(tick, draw)]))


def _follow_plan(tick: Tick, draw: st.DrawFn) -> Tick:
    """The same second of a run with a rate."""
    times = tick.sample.histogram(Time.LATENCY)
    sample = msgspec.structs.replace(
        tick.sample,
        times={Time.RESPONSE_TIME: times, Time.LATENESS: times},
        phase=draw(st.sampled_from(["", "soak", "x" * LONGEST_STAGE_NAME])),
        requests_planned=draw(COUNTS),
        clock_bound_s=draw(TIMES),
    )
    not_sent = draw(st.lists(COUNTS, min_size=3, max_size=3))
    return msgspec.structs.replace(tick, sample=sample, phase_left_s=draw(TIMES), not_sent=not_sent)


def check(lines: list[str], width: int, numbers: list[str]) -> None:
    """No line is wider than the terminal, and each number stands in one line, with nothing at its edges."""
    assert all(len(line) <= width for line in lines)
    missing = [
        number
        for number in numbers
        if not any(re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", line) for line in lines)
    ]
    assert missing == [], "\n".join(lines)


@ANY_CASE
@given(summaries(), WIDTHS)
def test_a_summary_is_whole_at_any_width(render: Render, summary: Summary, width: int) -> None:
    """The end screen shows account, outcomes, statuses, latencies, histogram, workers and flags."""
    outcomes = [getattr(summary.outcomes, name) for name in OutcomeCounts.__struct_fields__]
    counts = [summary.accounted, summary.requests, summary.resent_at_most, *summary.statuses.values()]
    numbers = [format_count(count) for count in (*counts, *filter(None, outcomes))]
    numbers += [f.format_share(count, summary.accounted) for count in outcomes if count]
    numbers += [format_bytes(summary.bytes_received), *summary.statuses]
    numbers += [format_count(flag.requests) for flag in summary.validity]
    numbers += ["817" for _ in summary.validity]
    if summary.active_s:
        numbers += [f.format_rate(summary.throughput_rps), f"over {format_duration(summary.active_s)}"]
    if summary.planned_rps is not None:
        numbers.append(f.format_rate(summary.planned_rps))
        causes = msgspec.structs.astuple(summary.not_sent)
        numbers += [format_count(count) for count in causes if count]
    for phase in summary.phases:
        rates = (phase.sent_rps, phase.completed_rps)
        has_begun = summary.active_s > phase.begin_s
        numbers += [format_count(phase.completed), *(f.format_rate(rate)[:-2] for rate in rates if has_begun)]
        numbers += [] if phase.due is None else [format_count(phase.due)]
    if summary.servers is not None:
        numbers.append(format_count(summary.servers.served))
    if len(summary.workers) <= 8:
        for worker in summary.workers:
            numbers += [
                format_count(worker.requests),
                f"{worker.cpu_s:,.1f} s",
                f"{worker.peak_rss_mb:,.0f} MB",
            ]
    if summary.latency_ms.max is not None:
        digits = f.choose_digits((summary.latency_ms.p50, summary.latency_ms.p99))
        numbers += [f.format_latency(value, digits) for value in msgspec.structs.astuple(summary.latency_ms)]
        for bar in build_bars(LATENCY.decode(summary)):
            numbers.append(format_count(bar.count))

    lines = render(build_screen(summary), width)

    check(lines, width, numbers)


@ANY_CASE
@given(ticks(), WIDTHS)
def test_the_live_area_is_whole_at_any_width(render: Render, tick: Tick, width: int) -> None:
    """The frame shows bar, account, rates, latencies, times and outcomes."""
    trend = TrendTracker().add(tick)
    sample = tick.sample
    counts = [sample.done, sample.requests_total, sample.accounted, sample.workers or 0]
    counts += [round(sample.in_flight or 0), sample.outcomes_so_far[0], *filter(None, sample.outcomes_so_far)]
    numbers = [
        *map(format_count, counts),
        f.format_progress(sample.done, sample.requests_total),
        f.format_rate(sample.rate_rps),
        f.format_rate(trend.average_rps),
    ]
    quantiles = trend.times[Time.LATENCY]
    numbers += [f.format_latency(latency_ms) for latency_ms in quantiles if latency_ms is not None]
    if has_rate(tick):
        rates = measure_tick_rates(tick)
        numbers += [*map(f.format_rate, rates), *map(format_count, filter(None, tick.not_sent))]

    frame = build_frame("x" * 50, SeenTick(tick=tick, trend=trend, seen_at_s=0.0), 0.0)

    check(render(frame, width), width, numbers)


@ANY_CASE
@given(
    st.lists(
        st.builds(
            ListedRun, run=st.just("261122-140408-3psn"), name=st.sampled_from(["", "soak", "x" * 100]),
            state=st.sampled_from(RunState), requests=COUNTS | st.just(OPEN_END), accounted=COUNTS,
            created_at=WHEN,
        ),
        min_size=1, max_size=5,
    ),
    WIDTHS,
)  # fmt: skip
def test_the_list_of_runs_is_whole_at_any_width(render: Render, rows: list[ListedRun], width: int) -> None:
    """Ids, counts and dates are complete; only names are cut."""
    numbers = [f.format_requests(row.requests) for row in rows]
    numbers += [format_count(row.accounted) for row in rows]
    numbers += [text for row in rows for text in (row.run, row.state, f.format_date_minute(row.created_at))]

    check(render(build_runs_table(rows), width), width, numbers)

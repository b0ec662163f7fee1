"""Summaries of runs, and their parts, as tests of what shows them need them."""

from typing import Any

from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Engine
from oku_core.summary.latency_summary import LatencySummary, build_latency_summary
from oku_core.summary.request_summary import (
    InnerSummary,
    NotSentCounts,
    OutcomeCounts,
    PhaseSummary,
    TargetSummary,
)
from oku_core.summary.summary import ServersSummary, Summary, WorkerSummary
from oku_core.tables.table import Table


def build_summary(histogram: Histogram | None = None, **changes: Any) -> Summary:
    """Build the summary of a completed run of 1,000 requests of 1 to 10.99 ms, changed as wanted."""
    if histogram is None:
        histogram = Histogram()
        for i in range(1000):
            histogram.record(1000 + 10 * i)
    fields: dict[str, Any] = {
        "run": "6f2c1a",
        "name": "soak",
        "state": RunState.COMPLETED,
        "engine": Engine.AIOHTTP,
        "requests": 1000,
        "accounted": 1000,
        "resent_at_most": 0,
        "outcomes": make_outcomes(ok=1000),
        "not_sent": NotSentCounts(),
        "statuses": {"200": 1000},
        "bytes_received": 13_000,
        "started_at": "2026-02-01T17:05:12Z",
        "ended_at": "2026-02-01T17:06:13Z",
        "active_s": 61.2,
        "throughput_rps": 16.3,
        "latency_ms": build_latency_summary(histogram),
        "response_time_ms": LatencySummary(),
        "lateness_ms": LatencySummary(),
        "histogram": hdr.encode_base64(histogram),
        "workers": [make_worker("worker-1"), make_worker("worker-2")],
        "servers": ServersSummary(served=1000),
        "validity": [],
    }
    return Summary(**fields | changes)


def make_worker(name: str) -> WorkerSummary:
    """Make a worker that did half of the run."""
    return WorkerSummary(name=name, requests=500, cpu_s=58.1, peak_rss_mb=61.4, lost=False)


def make_outcomes(**counts: int) -> OutcomeCounts:
    """Make the given outcomes and none of the others."""
    none = dict.fromkeys(OutcomeCounts.__struct_fields__, 0)
    return OutcomeCounts(**none | counts)


def make_target(**changes: Any) -> TargetSummary:
    """A target of 1,000 requests in two seconds, changed as wanted."""
    fields: dict[str, Any] = {
        "name": "item", "weight": 8, "requests": 1000,
        "outcomes": make_outcomes(ok=1000), "not_sent": NotSentCounts(), "statuses": {"200": 1000},
        "bytes_received": 13_000, "rate_rps": 500.0,
        "latency_ms": LatencySummary(p50=1.5, p95=15.0, p99=20.0, max=30.0),
        "response_time_ms": LatencySummary(), "lateness_ms": LatencySummary(),
    }  # fmt: skip
    return TargetSummary(**fields | changes)


def make_inner(**changes: Any) -> InnerSummary:
    """A thousand requests of one name, changed as wanted."""
    fields: dict[str, Any] = {
        "name": "login", "requests": 1000, "outcomes": make_outcomes(ok=1000), "statuses": {"200": 1000},
        "bytes_received": 13_000, "rate_rps": 500.0,
        "latency_ms": LatencySummary(p50=1.5, p95=15.0, p99=20.0, max=30.0),
    }  # fmt: skip
    return InnerSummary(**fields | changes)


def make_phase(**changes: Any) -> PhaseSummary:
    """A phase of 1,000 requests in two seconds, changed as wanted."""
    fields: dict[str, Any] = {
        "name": "soak", "begin_s": 2.0, "end_s": 4.0, "requests": 1000,
        "outcomes": make_outcomes(ok=1000), "not_sent": NotSentCounts(), "statuses": {"200": 1000},
        "bytes_received": 13_000, "completed": 990, "sent_rps": 500.0, "completed_rps": 480.0,
        "latency_ms": LatencySummary(p50=1.5, p99=20.0, max=30.0),
        "response_time_ms": LatencySummary(), "lateness_ms": LatencySummary(),
    }  # fmt: skip
    return PhaseSummary(**fields | changes)


def list_texts(table: Table) -> list[list[str]]:
    """The heads of a table and the texts of its rows; bars are left out."""
    places = [place for place, column in enumerate(table.columns) if column.key != "bar"]
    heads = [f"{table.columns[place].group} {table.columns[place].head}".strip() for place in places]
    return [heads, *([row.cells[place].text for place in places] for row in table.rows)]

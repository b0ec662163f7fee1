"""A second and a summary of a run to be shown, the time zone they are shown in, and a cluster to ask."""

import io
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import RenderableType
from tests.kit.outcomes import make_counts
from tests.kit.runs.compared import MakeRun, build_maker
from tests.unit.cli.kubectl_on_path import TOKEN, KubectlOnPath

from oku_cli.terminal.console import Terminal
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.results.summary import OutcomeCounts, ServersSummary, Summary, WorkerSummary
from oku_core.results.tick import Tick
from oku_core.results.timing_summary import build_latency_summary
from oku_core.spec.spec import Engine

Render = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show times of day in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def render() -> Render:
    """Gives the lines that a renderable makes on a console of a width."""

    def render_lines(renderable: RenderableType, width: int = 80) -> list[str]:
        console = Terminal(file=io.StringIO(), record=True, width=width, force_terminal=True)
        console.print(renderable)
        return console.export_text().splitlines()

    return render_lines


@pytest.fixture
def make_tick() -> Callable[..., Tick]:
    """Makes the 25th second of a run of a million requests, changed as wanted."""
    histogram = Histogram()
    for latency_us in (*[1_700] * 98, 6_040, 6_040):
        histogram.record(latency_us)

    def make(
        state: RunState = RunState.RUNNING, notices: Sequence[str] = (), run: str = "6f2c1a", **changes: Any
    ) -> Tick:
        fields: dict[str, Any] = {
            "at": 1_769_965_512.0,  # 2026-02-01 17:05:12 UTC
            "seconds": 1.0,
            "requests_total": 1_000_000,
            "accounted": 400_000,
            "leased": 80_000,
            "pending": 520_000,
            "done": 412_345,
            "resent_at_most": 0,
            "active_s": 25.0,
            "outcomes_so_far": make_counts(412_345),
            "workers": 2,
            "in_flight": 2_000,
            "rate_rps": 16_340.0,
            "outcomes": make_counts(16_340),
            "latency": histogram.build_latency(),
        }
        thresholds = list(changes.pop("thresholds", ()))
        sample = Sample(**fields | changes)
        return Tick(run=run, state=state, notices=list(notices), sample=sample, thresholds=thresholds)

    return make


@pytest.fixture
def make_summary() -> Callable[..., Summary]:
    """Makes the summary of a completed run of 1,000 requests of 1 to 10.99 ms, changed as wanted."""

    def make(histogram: Histogram | None = None, **changes: Any) -> Summary:
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
            "statuses": {"200": 1000},
            "bytes_received": 13_000,
            "started_at": "2026-02-01T17:05:12Z",
            "ended_at": "2026-02-01T17:06:13Z",
            "active_s": 61.2,
            "throughput_rps": 16.3,
            "latency_ms": build_latency_summary(histogram),
            "histogram": hdr.encode_base64(histogram),
            "workers": [make_worker("worker-1"), make_worker("worker-2")],
            "servers": ServersSummary(served=1000),
            "validity": [],
        }
        return Summary(**fields | changes)

    return make


@pytest.fixture
def make_run(make_summary: Callable[..., Summary]) -> MakeRun:
    """Makes a run of a minute with its seconds."""
    return build_maker(make_summary)


@pytest.fixture
async def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubectlOnPath]:
    """A fake kubectl that forwards to a coordinator with one run."""

    async def list_runs(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return web.json_response({"error": "the token is missing or wrong"}, status=401)
        return web.json_response([{"run": "r1"}])

    async def probe(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/api/runs", list_runs), web.get("/healthz", probe)])
    async with TestServer(app) as server:
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        yield KubectlOnPath(tmp_path, ["127.0.0.1", server.port])


def make_worker(name: str) -> WorkerSummary:
    """Make a worker that did half of the run."""
    return WorkerSummary(name=name, requests=500, cpu_s=58.1, peak_rss_mb=61.4, lost=False)


def make_outcomes(**counts: int) -> OutcomeCounts:
    """Make the given outcomes and none of the others."""
    none = dict.fromkeys(OutcomeCounts.__struct_fields__, 0)
    return OutcomeCounts(**none | counts)

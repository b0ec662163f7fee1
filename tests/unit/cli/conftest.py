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
from tests.kit.histograms import make_histogram
from tests.kit.outcomes import make_counts
from tests.kit.runs.compared import MakeRun, build_maker
from tests.kit.runs.summaries import build_summary
from tests.unit.cli.kubectl_on_path import TOKEN, KubectlOnPath

from oku_cli.terminal.console import Terminal
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.summary.summary import (
    Summary,
)
from oku_core.summary.tick import Tick

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
    histogram = make_histogram((*[1_700] * 98, 6_040, 6_040))

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
            "times": {Time.LATENCY: histogram.build_latency()},
        }
        thresholds = list(changes.pop("thresholds", ()))
        sample = Sample(**fields | changes)
        return Tick(run=run, state=state, notices=list(notices), sample=sample, thresholds=thresholds)

    return make


@pytest.fixture
def make_summary() -> Callable[..., Summary]:
    """Makes the summary of a completed run of 1,000 requests of 1 to 10.99 ms, changed as wanted."""
    return build_summary


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

"""A delay server that is away at the very end of a run: its count is waited for, or said to be unknown."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.faults.abuse import Site, run_site
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.servers.delay_server import DelayServer

from oku_cli.exit_code import ExitCode

_REQUESTS = 20


def run_past_death(site: Site, come_back: Callable[[], None]) -> dict[str, Any]:
    """A run whose server dies with all requests in flight, so that it ends in this moment; its summary."""
    command = [
        *OKU, "run", "--coordinator", site.api.url, "--requests", str(_REQUESTS), "--concurrency", "20",
        "--delay", "60s", "--timeout", "120s", "--json", "--quiet",
    ]  # fmt: skip
    environment = os.environ | {"OKU_TOKEN": TOKEN}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            wait_until(lambda: bool(site.api.list_runs()), 20, "the run is submitted")
            run = site.api.list_runs()[0]["run"]
            wait_until(lambda: site.api.summary(run)["servers"] == {"served": _REQUESTS}, 30, "all are sent")
            os.kill(site.server.pid, signal.SIGKILL)
            wait_until(lambda: site.api.summary(run)["state"] == "completed", 30, "it has ended")
            come_back()
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == ExitCode.NOT_PASSED
    summary: dict[str, Any] = json.loads(output)
    assert summary["accounted"] == summary["outcomes"]["disconnected"] == _REQUESTS
    return summary


def list_flags(summary: dict[str, Any]) -> set[str]:
    """What the summary warns of."""
    return {validity["flag"] for validity in summary["validity"]}


def test_a_server_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    """Its counts are in files: what it says then is what was served."""
    counts = ("--counts-dir", str(tmp_path / "counts"))
    with run_site(tmp_path, *counts) as site:
        started: list[DelayServer] = []

        def come_back() -> None:
            time.sleep(1.0)
            (tmp_path / "again").mkdir()
            port = str(urlsplit(site.server.probe_url).port)
            started.append(DelayServer(tmp_path / "again", *counts, "--port", port))

        try:
            summary = run_past_death(site, come_back)
        finally:
            for server in started:
                server.end()
    assert summary["servers"] == {"served": _REQUESTS}
    assert "served_unknown" not in list_flags(summary)


def test_a_server_that_stays_away_leaves_its_count_unknown_and_the_summary_says_so(tmp_path: Path) -> None:
    """After some seconds; it is no failure of the run."""
    with run_site(tmp_path) as site:
        summary = run_past_death(site, lambda: None)
    assert summary["servers"] is None
    assert "served_unknown" in list_flags(summary)

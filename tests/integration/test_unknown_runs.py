"""Requests of others that name runs which nobody announced: the counts of real runs stay."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.faults.abuse import Site, run_site
from tests.kit.runs.local_run import OKU, wait_until

from oku_cli.exit_code import ExitCode
from oku_server.counts.count_table import ROWS

_NAMES = 10 * ROWS
"""Ten times as many as a process has rows for."""
_AT_ONCE = 50
_REQUESTS = 8_000


@pytest.fixture(params=["memory", "files"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """One whose delay server has two processes."""
    counts = ("--counts-dir", str(tmp_path / "counts")) if request.param == "files" else ()
    with run_site(tmp_path, "--processes", "2", *counts) as site:
        yield site


def start_run(site: Site, stack: ExitStack) -> "subprocess.Popen[bytes]":
    """Start a run against the delay server."""
    command = [
        *OKU,
        "run",
        "--coordinator",
        site.api.url,
        "--requests",
        str(_REQUESTS),
        "--concurrency",
        "20",
    ]
    environment = os.environ | {"OKU_TOKEN": TOKEN}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def flood(site: Site) -> None:
    """Ask for many runs, one request each, over connections to both processes."""
    parts = urlsplit(site.server.probe_url)
    address = (str(parts.hostname), int(parts.port or 0))
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(8)]
        for first in range(0, _NAMES, _AT_ONCE):
            connection = connections[first // _AT_ONCE % len(connections)]
            connection.sendall(
                b"".join(
                    b"GET /x HTTP/1.1\r\nHost: x\r\nOku-Delay: 0s\r\nOku-Run: unknown-%d\r\n\r\n" % number
                    for number in range(first, first + _AT_ONCE)
                )
            )
            answered = 0
            while answered < _AT_ONCE:
                data = connection.recv(1 << 16)
                assert data
                answered += data.count(b"Hello, World!")


def test_unknown_runs_do_not_evict_the_counts_of_active_ones(site: Site) -> None:
    """Runs that begin before or after unknown ones have filled all rows keep their counts."""
    with ExitStack() as stack:
        first = start_run(site, stack)
        wait_until(lambda: bool(site.api.list_runs()), 20, "the run is submitted")
        run = site.api.list_runs()[0]["run"]
        wait_until(lambda: site.api.summary(run)["accounted"] > 0, 30, "it goes on")
        flood(site)
        assert first.wait(60) == ExitCode.COMPLETED
        second = start_run(site, stack)
        wait_until(lambda: len(site.api.list_runs()) == 2, 20, "the next one is submitted")
        flood(site)
        assert second.wait(60) == ExitCode.COMPLETED
    for listed in site.api.list_runs():
        summary = site.api.summary(listed["run"])
        assert (summary["accounted"], summary["servers"]["served"]) == (_REQUESTS, _REQUESTS)

"""What failed, told and tried again by real processes: a server fails at known indices of a sweep."""

import csv
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kit.free_ports import pick_port
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start, run_oku, wait_until
from tests.kit.servers.failing_server import HANGS_UP, list_failing

REQUESTS = 3000
_REASONS = ("status 503", "the server hung up")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(120)


def is_listening(port: int) -> bool:
    """Whether somebody takes connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def serving(port: int, *rules: str) -> Iterator[None]:
    """A server that fails at known indices, or at none, until the block ends."""
    command = [sys.executable, "-m", "tests.kit.servers.failing_server", str(port), *rules]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_until(lambda: is_listening(port), 10, "the server listens")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("engine", ["aiohttp", "httptools"])
def test_a_sweep_lists_exactly_what_failed_although_a_worker_dies(
    start: Start, tmp_path: Path, engine: str
) -> None:
    """Its retry sends exactly these, and both together say that all is ok."""
    port, failing = pick_port(), list_failing(REQUESTS)
    flags = ("-n", str(REQUESTS), "-c", "10", "--workers", "2", "--engine", engine)
    with serving(port, "fails"):
        run = start("run", f"http://127.0.0.1:{port}/{{i}}", *flags)
        run.wait_for_accounted(100)
        run.kill("worker-1")
        summary = run.finish()
    assert_completed(summary)
    folder = ("--data-dir", str(run.data_dir))
    listed = run_oku("failures", "latest", *folder, cwd=tmp_path).stdout.splitlines()
    assert all(line[45:66].strip() in _REASONS for line in listed), listed
    assert all(line[66:].startswith(f"GET http://127.0.0.1:{port}/") for line in listed), listed
    by_reason = run_oku("failures", "latest", "--csv", "--reason", "status 503", *folder, cwd=tmp_path).stdout
    assert [int(row[0]) for row in list(csv.reader(by_reason.splitlines()))[1:]] == sorted(
        {*failing} - {*HANGS_UP}
    )
    rows = list(csv.reader(run_oku("failures", "latest", "--csv", *folder, cwd=tmp_path).stdout.splitlines()))
    assert rows.pop(0) == ["index", "outcome", "status", "reason", "target", "method", "url"]
    assert {int(index): outcome for index, outcome, *_ in rows} == failing
    assert all(rest == ["", "GET", f"http://127.0.0.1:{port}/{index}"] for index, _, _, _, *rest in rows)
    assert {tuple(row[2:4]) for row in rows} == {("503", "status 503"), ("", "the server hung up")}
    assert {each["reason"]: each["requests"] for each in summary["failures"]} == {
        "status 503": len(failing) - len(HANGS_UP),
        "the server hung up": len(HANGS_UP),
    }
    with serving(port):
        some = json.loads(
            run_oku("retry", "latest", "--reason", _REASONS[1], "--json", *folder, cwd=tmp_path).stdout
        )
        assert (some["requests"], some["completes"]["unjudged"]) == (len(HANGS_UP), 0)
        retried = run_oku("retry", summary["run"], "--json", *folder, cwd=tmp_path)
    retry = json.loads(retried.stdout)
    assert (retry["requests"], retry["outcomes"]["ok"]) == (len(failing), len(failing))
    completes = retry["completes"]
    assert (completes["run"], completes["requests"]) == (summary["run"], REQUESTS)
    assert (completes["ok"], completes["ok_with_retries"]) == (REQUESTS - len(failing), REQUESTS)

"""A target that fails in every way at once: each request ends in the right outcome, once."""

import json
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import OKU, Start, wait_until

from oku_core.spec.spec import Engine
from oku_server.behaviour.fault import Fault, FaultRates

RATES = FaultRates(error=0.02, reset=0.01, stall=0.0005, truncate=0.01)
SEED = 5
TIMEOUT = "3s"
"""Long, so that a request is not late when the machine stands still for a second or two."""
REQUESTS = 10_000
OUTCOME_OF = {
    None: "ok",
    Fault.ERROR: "unexpected_status",
    Fault.RESET: "disconnected",
    Fault.STALL: "timeout",
    Fault.TRUNCATE: "disconnected",
}


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    """A delay server of two processes with faults, which the run takes for somebody else's service."""
    ready = tmp_path / "ready"
    rates = [part for fault, rate in RATES.by_fault.items() for part in (f"--{fault}-rate", str(rate))]
    command = [*OKU, "server", "--port", "0", "--ready-file", str(ready), "--processes", "2", *rates]
    with subprocess.Popen([*command, "--seed", str(SEED)], stderr=subprocess.DEVNULL) as process:
        wait_until(ready.exists, 30, "the target listens")
        yield f"http://{ready.read_text().strip()}"
        process.terminate()


def count_served(target: str, run: str) -> int:
    """What the target itself counted."""
    with urllib.request.urlopen(f"{target}/-/served?run={run}", timeout=30) as response:
        return int(json.loads(response.read())["served"])


def test_each_fault_ends_in_its_outcome(start: Start, engine: Engine, target: str) -> None:
    """It is known beforehand which index fails and how; the account says the same, to the last request."""
    expected = Counter(OUTCOME_OF[RATES.draw(SEED, index)] for index in range(REQUESTS))
    run = start(
        "run", "--url", f"{target}/{{i}}", "--header", "Oku-Run: faults", "--requests", str(REQUESTS),
        "--workers", "2", "--timeout", TIMEOUT, "--engine", engine,
    )  # fmt: skip

    summary = run.finish()

    assert_completed(summary)
    assert {name: count for name, count in summary["outcomes"].items() if count} == dict(expected)
    assert summary["statuses"] == {"200": expected["ok"], "500": expected["unexpected_status"]}
    # No engine sends anything again by itself: the target saw each request once.
    assert count_served(target, "faults") == REQUESTS

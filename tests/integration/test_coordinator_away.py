"""A run with a highest rate whose coordinator dies, and later stands still for so long that work runs out."""

import signal
import time
from contextlib import closing
from pathlib import Path

from tests.kit.coordinators.transactions import read
from tests.kit.runs.account import list_flags
from tests.kit.runs.local_run import starting_runs
from tests.kit.servers.arrival_target import run_arrival_target

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history

RATE = 60
AWAY_S = 16.0
"""Workers go on for 9 to 12 s of work meanwhile; whether there was more shows once it is back."""


def test_a_run_without_its_coordinator_is_underfilled_and_has_each_second_once(tmp_path: Path) -> None:
    """It was below its highest rate although neither the target nor its window kept it there."""
    with run_arrival_target() as target, starting_runs(tmp_path) as start:
        run = start("run", target.url, "--max-rate", f"{RATE}/s", "-c", "20", "-w", "1", "-z", "40s")
        run.wait_for_accounted(4 * RATE)
        run.wait_for_restart("coordinator", run.kill("coordinator"))
        run.wait_for_accounted(7 * RATE)
        run.kill("coordinator", signal.SIGSTOP)
        time.sleep(AWAY_S)
        run.kill("coordinator", signal.SIGCONT)
        summary = run.finish()
    assert summary["state"] == "completed"
    assert list_flags(summary) >= {"underfilled"}
    assert 2 < summary["underfilled_s"] < AWAY_S
    with closing(Ledger(run.data_dir / "ledger.sqlite3", read_only=True)) as ledger:
        samples = read(ledger, fetch_history, summary["run"]).samples
    assert sum(sample.requests_ended for sample in samples) == summary["accounted"]
    assert max(sample.rate_rps for sample in samples) < 1.5 * RATE, [
        (sample.at, sample.seconds, sample.rate_rps) for sample in samples
    ]

from pathlib import Path

import pytest
from tests.kit.coordinators.metric_samples import read_samples
from tests.kit.coordinators.transactions import change

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.storage_health import Space, StorageError, StorageFault, measure_space
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.telemetry.prometheus.metrics import LedgerCollector, Metrics
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec

NOW = 100.0


@pytest.fixture
def metrics(ledger: Ledger, tmp_path: Path) -> Metrics:
    """Those of a coordinator at `NOW`."""
    metrics = Metrics()
    metrics.show_ledger(LedgerCollector(ledger, tmp_path, lambda: NOW))
    return metrics


def test_runs_are_counted_by_state(metrics: Metrics, ledger: Ledger) -> None:
    """Every state is there from the start, and a deleted run in none of them."""
    before = read_samples(metrics)
    assert {state: before["oku_runs", state] for state in RunState} == dict.fromkeys(RunState, 0)
    for run in ("r1", "r2", "r3", "r4"):
        change(ledger, create_run, run, Spec(requests=10), 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    change(ledger, change_state, "r2", RunState.PAUSED, 1.0)
    change(ledger, change_state, "r3", RunState.CANCELLED, 1.0)
    after = read_samples(metrics)
    assert {state for state in RunState if after["oku_runs", state]} == {
        RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED, RunState.PENDING,
    }  # fmt: skip
    change(ledger, begin_deletion, "r3")
    assert read_samples(metrics)["oku_runs", "cancelled"] == 0


def test_the_longest_wait_is_shown(metrics: Metrics, ledger: Ledger) -> None:
    """Of the runs that wait now; giving a turn to the next does not make it shorter."""
    assert read_samples(metrics)["oku_queue_oldest_seconds",] == 0
    change(ledger, create_run, "r1", Spec(requests=10), NOW - 30.0)
    change(ledger, create_run, "r2", Spec(requests=10), NOW - 20.0)
    assert read_samples(metrics)["oku_queue_oldest_seconds",] == 30
    change(ledger, lifecycle.requeue, "r1", NOW - 10.0, "a reason")
    assert read_samples(metrics)["oku_queue_oldest_seconds",] == 30
    change(ledger, change_state, "r1", RunState.RUNNING, NOW)
    assert read_samples(metrics)["oku_queue_oldest_seconds",] == 20


def test_the_space_of_the_data_folder_is_shown(metrics: Metrics, tmp_path: Path) -> None:
    """As `df` has it."""
    before, shown, after = measure_space(tmp_path), read_samples(metrics), measure_space(tmp_path)
    assert before is not None
    assert after is not None
    assert shown["oku_data_size_bytes",] == before.size_bytes
    slack = 1 << 30  # others write to the disk of the tests, too
    assert abs(shown["oku_data_available_bytes",] - after.free_bytes) < slack


def test_a_ledger_that_cannot_be_used_hides_no_other_metric(
    metrics: Metrics, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is when they are needed most."""

    def fail(_: Transaction) -> None:
        raise StorageError(StorageFault.IO_ERROR, "said")

    assert read_samples(metrics)["oku_ledger_usable",] == 1
    ledger.storage.record_space(Space(0, 1 << 30))
    monkeypatch.setattr(run_table, "count_by_state", fail)
    samples = read_samples(metrics)
    assert samples["oku_ledger_usable",] == 0
    assert ("oku_messages_total", "closed") in samples
    assert ("oku_data_size_bytes",) in samples
    assert not [key for key in samples if key[0] == "oku_runs"]

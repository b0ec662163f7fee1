"""Loki is killed while a run goes on; workers and the coordinator die beside it."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.transactions import read
from tests.kit.loki.dashboards import Grafana, list_queries
from tests.kit.loki.loki import Loki
from tests.kit.loki.loki_account import assert_events, assert_published, assert_ticks_agree
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import LocalRun, Start, wait_until

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.tables.run_table import fetch_runs
from oku_core.results.event import EventType
from oku_core.spec.spec import Engine

pytestmark = pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])


@pytest.fixture
def loki(tmp_path: Path) -> Iterator[Loki]:
    """A Loki that the test may kill."""
    with Loki(tmp_path / "loki") as started:
        yield started


def test_three_workers_and_the_coordinator_die(start_load: Start, loki: Loki) -> None:
    """Loki has the sums of the ledger, deaths are reported, and every panel has data."""
    began = time.time()
    run = start_load(25_000, "--name", "hurt", "--loki", loki.url, "--range-size", "1000")
    run.wait_for_leases()
    # Not before the other one's ports are in use: a stack draws two that are free.
    beside = start_load(4_000, "--loki", loki.url, data_dir="beside")
    wait_until(lambda: len(run.worker_names()) == 2, 30, "both workers have reported")
    for victim in ("worker-1", "worker-2", "worker-1"):
        kill_and_replace(run, victim)
    old_pid = run.kill("coordinator")
    run.wait_for_restart("coordinator", old_pid)
    summary, other = run.finish(), beside.finish()
    assert_completed(summary)
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)
    events = assert_events(loki, run.data_dir / "ledger.sqlite3", summary["run"])
    assert events["lease_expired"] >= 3
    assert events["worker_lost"] == 3
    assert events["coordinator_started"] == 1
    assert events["validity"] == len(summary["validity"])
    variables = {"run": summary["run"], "run_a": summary["run"], "run_b": other["run"]}
    assert_panels(Grafana(loki.url, began - 5, time.time() + 5, variables), summary)


def kill_and_replace(run: LocalRun, worker: str) -> None:
    """Kill a worker, and wait until the ledger tells of its death, what was taken back and the next one.

    A worker whose death comes before its first word is not missed, and what a coordinator has heard in its
    last second of workers is gone with it.
    """
    told = count_events(run, worker)
    old_pid = run.kill(worker)
    run.wait_for_restart(worker, old_pid)
    awaited = {EventType.WORKER_LOST, EventType.LEASE_EXPIRED, EventType.WORKER_JOINED}
    wait_until(
        lambda: awaited <= set(count_events(run, worker) - told), 30, f"{worker} is replaced", every_s=0.1
    )


def count_events(run: LocalRun, worker: str) -> Counter[EventType]:
    """What the ledger tells of a worker, by type."""
    ledger = Ledger(run.data_dir / "ledger.sqlite3", read_only=True)
    try:
        events = read(ledger, fetch_history, read(ledger, fetch_runs)[0].run).events
    finally:
        ledger.close()
    return Counter(event.type for event in events if event.worker == worker)


def assert_panels(grafana: Grafana, summary: dict[str, Any]) -> None:
    """Every query of every dashboard gets data, and the figures that are exact are those of the summary."""
    queries = [query for query in list_queries() if query.is_lasting]
    frames = {str(query): grafana.fetch(query) for query in queries}
    assert [query for query, found in frames.items() if not any(frame.values for frame in found)] == []

    def fetch_figure(query: str) -> float:
        [frame] = frames[f"oku-run: {query}"]
        [value] = frame.values
        return float(value)

    assert fetch_figure("Sums over ranges: B") == summary["accounted"]
    assert fetch_figure("Account: B") == summary["accounted"]
    assert fetch_figure("Outcomes of the run: A") == summary["outcomes"]["ok"]
    latencies = [fetch_figure(f"Latency of the whole run: {ref}") for ref in "ABCDEFGH"]
    assert set(latencies) == set(summary["latency_ms"].values())


def test_loki_and_the_coordinator_are_killed_again_and_again(start_load: Start, loki: Loki) -> None:
    """Loki is killed while it takes batches, then the coordinator while it publishes: what the latter had
    sent and not yet removed from its outbox is sent again by the next one. Nothing is missing and nothing
    counts twice.
    """
    run = start_load(70_000, "--loki", loki.url, "--range-size", "100")
    run.wait_for_leases()
    for _ in range(5):
        time.sleep(1.1)
        loki.kill()
        time.sleep(0.4)
        loki.start()
    for _ in range(6):
        time.sleep(0.9)
        old_pid = run.kill("coordinator")
        run.wait_for_restart("coordinator", old_pid)
    summary = run.finish()
    assert_completed(summary)
    assert "lines wait" not in run.output
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.accounts.work_table import keep_processes
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.runs.summary.summaries import build_summary
from oku_coordinator.runs.summary.summarizer import Summarizer
from oku_core.accounting.run_state import RunState
from oku_core.summary.summary import ProcessSummary, Summary

NOW = 9.0


async def sum_up(summarizer: Summarizer, ledger: Ledger, served: int | None = None) -> Summary:
    """The summary of the only run."""
    return (await summarizer.build(read(ledger, fetch_run, "r1"), served))[1]


async def test_a_summary_is_that_of_the_snapshot_as_the_account_grows(
    ledger: Ledger, deal: Callable[..., Any], make_batch: Callable[..., Any], apply: Callable[..., Any]
) -> None:
    """Under way and at its end, when its account is still in memory."""
    summarizer = Summarizer(ledger, lambda: NOW)
    for accounted in (50, 100):
        apply([make_batch(deal(50))], 5.0)
        summary = await sum_up(summarizer, ledger)
        assert summary == build_summary(read(ledger, fetch_snapshot, "r1"), NOW)
        assert summary.accounted == accounted
    assert summary.state is RunState.COMPLETED


@pytest.fixture
def completed(
    ledger: Ledger, deal: Callable[..., Any], make_batch: Callable[..., Any], apply: Callable[..., Any]
) -> None:
    """The only run is over."""
    apply([make_batch(deal(100))], 5.0)


@pytest.mark.usefixtures("completed")
async def test_the_account_of_a_run_at_rest_is_read_once(
    path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a coordinator that was started after its end; what else is kept of the run is seen at once."""
    fetched: list[str] = []

    def fetch(transaction: Any, run: str) -> Any:
        fetched.append(run)
        return fetch_snapshot(transaction, run)

    expected = build_summary(read(ledger, fetch_snapshot, "r1"), NOW)
    monkeypatch.setattr(snapshots, "fetch_snapshot", fetch)
    ledger.close()
    with closing(Ledger(path)) as started:
        summarizer = Summarizer(started, lambda: NOW)
        for _ in range(3):
            assert await sum_up(summarizer, started) == expected
        assert len(fetched) == 1
        change(started, keep_processes, "r1", [ProcessSummary(name="broker", peak_mb=8.0)])
        assert [each.name for each in (await sum_up(summarizer, started)).processes] == ["broker"]
        assert len(fetched) == 2


@pytest.mark.usefixtures("completed")
async def test_a_run_that_was_deleted_is_not_in_memory(ledger: Ledger) -> None:
    """Its account was the last one there."""
    await sum_up(Summarizer(ledger, lambda: NOW), ledger)
    record = read(ledger, fetch_run, "r1")
    with ledger.change() as t:
        begin_deletion(t, "r1")
    with pytest.raises(UnknownRunError):
        await Summarizer(ledger, lambda: NOW).build(record, None)

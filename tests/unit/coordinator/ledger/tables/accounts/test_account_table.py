from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables.accounts.account_table import fetch_account, is_in_memory, load_account
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.summary.validity import Flag

Apply = Callable[..., list[MessageVerdict]]
Deal = Callable[..., LeaseRecord]
MakeBatch = Callable[..., CheckpointBatch]


def test_workers_are_summed_up_by_name(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Requests and processor time add up over a worker's processes; its memory is the largest of them."""
    going = deal(worker="w2")
    batches = [
        make_batch(going, done=4, is_final=False, cpu_s=0.5, peak_rss_mb=70.0),
        make_batch(deal(worker="w1"), cpu_s=0.25, peak_rss_mb=90.0),
        make_batch(deal(worker="w1"), cpu_s=0.5, peak_rss_mb=80.04, done=5),
    ]
    apply(batches, 5.0)
    apply([make_batch(going, sequence=2, cpu_s=1.0, peak_rss_mb=70.06)], 6.0)
    workers = read(ledger, fetch_snapshot, "r1").workers
    assert [(worker.name, worker.requests, worker.cpu_s, worker.peak_rss_mb) for worker in workers] == [
        ("w1", 15, 0.75, 90.0),
        ("w2", 10, 1.0, 70.1),
    ]
    assert not any(worker.lost for worker in workers)


def test_flags_sum_up_requests_and_keep_the_worst_figure(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Each checkpoint adds the requests that it has gained; one without a fault adds nothing."""
    going = deal()
    batches = [
        make_batch(going, done=6, is_final=False, max_lag_s=0.5, lagged=4),
        make_batch(going, sequence=2, max_lag_s=0.5, lagged=10),
        make_batch(deal(), max_lag_s=0.2, lagged=10, busy_share=0.95, saturated=7),
        make_batch(deal()),
    ]
    apply(batches, 5.0)
    assert sorted(read(ledger, fetch_snapshot, "r1").flags) == [
        (Flag.LOOP_LAG, 20, 0.5),
        (Flag.WORKER_SATURATED, 7, 0.95),
    ]


def test_the_last_checkpoint_is_remembered(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """There is no such time before the first one."""
    lease = deal()
    assert read(ledger, fetch_run, "r1").last_checkpoint_at is None
    apply([make_batch(lease)], 5.5)
    assert read(ledger, fetch_run, "r1").last_checkpoint_at == 5.5


def test_the_account_of_the_run_that_came_to_rest_last_stays_in_memory(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Its summary is due. That of the one before goes, and so does that of a deleted run."""
    runs = ("r1", "r2")
    for run in runs:
        lease = deal(100, run)
        apply([make_batch(lease)], 5.0)
        assert [read(ledger, is_in_memory, each) for each in runs] == [each == run for each in runs]
    change(ledger, begin_deletion, "r2")
    assert not read(ledger, is_in_memory, "r2")


def test_an_account_can_be_read_ahead(
    path: Path, ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """By a coordinator that was just started."""
    apply([make_batch(deal(50))], 5.0)
    ledger.close()
    with closing(Ledger(path)) as started:
        assert not read(started, is_in_memory, "r1")
        read(started, load_account, "r1")
        assert read(started, is_in_memory, "r1")
        assert read(started, fetch_account, "r1").parts.fetch_measured().accounted == 50

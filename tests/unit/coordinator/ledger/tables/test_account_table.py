from collections.abc import Callable

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_core.messaging.lease import Report
from oku_core.results.summary import Flag

Cut = Callable[..., LeaseRecord]
MakeReport = Callable[..., Report]


def test_workers_are_summed_up_by_name(ledger: Ledger, cut: Cut, make_report: MakeReport) -> None:
    """Requests and processor time add up over a worker's processes; its memory is the largest of them."""
    reports = [
        make_report(cut(), worker="w2", cpu_s=1.0, peak_rss_mb=70.0),
        make_report(cut(), worker="w1", incarnation="b1", cpu_s=0.25, peak_rss_mb=90.0),
        make_report(cut(), worker="w1", incarnation="b2", cpu_s=0.5, peak_rss_mb=80.04, done=25),
    ]
    ledger.leases.apply(reports, 5.0)
    ledger.leases.apply([make_report(cut(), worker="w2", cpu_s=0.0001, peak_rss_mb=70.06)], 6.0)
    workers = ledger.runs.fetch_snapshot("r1").workers
    assert [(worker.name, worker.requests, worker.cpu_s, worker.peak_rss_mb) for worker in workers] == [
        ("w1", 15, 0.75, 90.0),
        ("w2", 20, 1.0, 70.1),
    ]
    assert not any(worker.lost for worker in workers)


def test_flags_sum_up_requests_and_keep_the_worst_figure(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """A report without a fault adds nothing to the flags."""
    reports = [
        make_report(cut(), max_lag_s=0.5, lagged=10),
        make_report(cut(), max_lag_s=0.2, lagged=10, busy_share=0.95, saturated=7),
        make_report(cut()),
    ]
    ledger.leases.apply(reports, 5.0)
    assert sorted(ledger.runs.fetch_snapshot("r1").flags) == [
        (Flag.LOOP_LAG, 20, 0.5),
        (Flag.WORKER_SATURATED, 7, 0.95),
    ]


def test_the_last_report_is_remembered(ledger: Ledger, cut: Cut, make_report: MakeReport) -> None:
    """There is no such time before the first report."""
    lease = cut()
    assert ledger.runs.fetch("r1").last_checkpoint_at is None
    ledger.leases.apply([make_report(lease)], 5.5)
    assert ledger.runs.fetch("r1").last_checkpoint_at == 5.5

from tests.kit.workers.engines_in_memory import WORKER, BuiltEngines, begin, build_lease, receive, settle

from oku_core.messaging.lease import find_fault
from oku_workers.executions.execution import DISCONNECTED
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.reports import build_empty_report


async def test_a_lease_ends_in_a_true_report(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It names the lease, the attempt, the worker and its process, and all that came of the requests."""
    lease = build_lease(100, 110)
    task = begin(runner, lease, "e7")
    await settle()
    await built.engine.work()

    report = await receive(task)

    assert find_fault(report, 100, 110) is None
    assert (report.lease, report.execution, report.worker, report.incarnation) == (lease.id, "e7", "w1", "b1")
    assert (report.start, report.done, report.outcomes) == (100, 110, [10, 0, 0, 0, 0, 0])
    assert (report.statuses, report.bytes_received, report.latency.sum_us) == ({"200": 10}, 100, 15_000)
    assert report.peak_rss_mb > 10


async def test_a_failed_request_is_in_the_report(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It has an outcome, and no status and no latency."""
    task = begin(runner, build_lease(0, 3))
    await settle()
    built.engine.fill()
    built.engine.flights.pop()[0].fail(DISCONNECTED)
    built.engine.answer_all()

    report = await receive(task)

    assert report.outcomes == [2, 0, 0, 0, 1, 0]
    assert find_fault(report, 0, 3) is None


def test_an_empty_report_gives_everything_back() -> None:
    """It covers nothing, and is believed."""
    lease = build_lease(7, 9)
    report = build_empty_report(WORKER, lease, "e1", 1.0)
    assert (report.lease, report.execution, report.worker, report.incarnation) == (lease.id, "e1", "w1", "b1")
    assert (report.start, report.done, report.covered) == (7, 7, 0)
    assert find_fault(report, 7, 9) is None

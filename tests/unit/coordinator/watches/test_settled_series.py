import math
from typing import Any

import pytest
from tests.kit.coordinators.leases import build_batch, build_checkpoint
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.storage.lease_records import LeaseRecord, Receipt
from oku_coordinator.watches.threshold_watch import SettledSeries
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.messaging.progress import LeaseProgress, Progress

NOW = 50.0


def build_lease(worker: int = 1, **known: Any) -> LeaseRecord:
    """An open lease of a process `bN`."""
    return LeaseRecord(
        id=f"l{worker}", run="r1", ranges=IndexRanges([(0, 100)]), worker=f"w{worker}",
        incarnation=f"b{worker}", cut_at=2.0, limit=100, end=100, reported_end=100, **known,
    )  # fmt: skip


def build_receipt(
    told_to: float, worker: int = 1, verdict: MessageVerdict = MessageVerdict.ACCOUNTED
) -> Receipt:
    """What was made of a message of a process."""
    lease = build_lease(worker)
    batch = build_batch(lease, build_checkpoint(lease), told_to=told_to)
    return Receipt(batch=batch, verdicts=[verdict])


def build_progress(taken: int | None, ok: int = 0, coordinator_at: float | None = None) -> Progress:
    """What the process `b1` says at 20 s of its lease; None if it does not name it."""
    leases = {} if taken is None else {"l1": LeaseProgress(taken, 100, make_counts(ok))}
    return Progress(worker="w1", incarnation="b1", at=20.0, leases=leases, coordinator_at=coordinator_at)


def test_without_leases_nobody_has_anything_to_tell() -> None:
    """All that was sent is accounted."""
    assert SettledSeries().find_end([], NOW) == NOW


def test_the_one_who_is_furthest_behind_counts() -> None:
    """Of those that have leases; a message that comes later does not take back what an earlier one told."""
    told = SettledSeries()
    for receipt in (build_receipt(12.0), build_receipt(14.0, 2), build_receipt(11.0), build_receipt(3.0, 3)):
        told.record_receipt(receipt)
    assert told.find_end([build_lease(1), build_lease(2)], NOW) == 12.0
    assert told.find_end([build_lease(2)], NOW) == 14.0


def test_of_a_worker_that_has_told_nothing_nobody_knows_anything() -> None:
    """A coordinator that has just started waits for all of them; one that is gone is not known any more."""
    told = SettledSeries()
    told.record_receipt(build_receipt(12.0))
    assert told.find_end([build_lease(1), build_lease(2)], NOW) == -math.inf
    told.forget("b1")
    assert told.find_end([build_lease(1)], NOW) == -math.inf


@pytest.mark.parametrize(
    ("verdict", "told_to"), [(MessageVerdict.REPEATED, 12.0), (MessageVerdict.UNTRUE, -math.inf)]
)
def test_what_the_ledger_does_not_have_was_not_told(verdict: MessageVerdict, told_to: float) -> None:
    """A copy says nothing new, but it is true."""
    told = SettledSeries()
    told.record_receipt(build_receipt(12.0, verdict=verdict))
    assert told.find_end([build_lease()], NOW) == told_to


@pytest.mark.parametrize(
    ("taken", "ok", "told_to"), [(30, 20, 20.0), (31, 20, 12.0), (30, 21, 12.0), (None, 0, 12.0)]
)
def test_who_has_no_news_tells_so_with_its_progress(taken: int | None, ok: int, told_to: float) -> None:
    """All that it has taken, and all that has ended, is in the ledger.

    Of a target that does not answer, nothing else says so.
    """
    told = SettledSeries()
    told.record_receipt(build_receipt(12.0))
    told.record_progress(build_progress(taken, ok))
    assert told.find_end([build_lease(done=30, outcomes=make_counts(20), sequence=3)], NOW) == told_to


def test_a_lease_that_nobody_has_begun_has_nothing_to_tell() -> None:
    """Its message may still be under way."""
    told = SettledSeries()
    told.record_progress(build_progress(None))
    assert told.find_end([build_lease()], NOW) == 20.0


def test_the_clock_that_is_behind_counts() -> None:
    """What was sent is counted by the coordinator's, what has ended by that of the worker's machine."""
    for coordinator_at, told_to in ((19.0, 19.0), (21.0, 20.0)):
        told = SettledSeries()
        told.record_progress(build_progress(0, coordinator_at=coordinator_at))
        assert told.find_end([build_lease()], NOW) == told_to

import dataclasses

import pytest

from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.messaging.progress import Progress

TIMEOUT_S = 10.0
UNCLAIMED = LeaseRecord(
    id="l1", run="r1", start=0, stop=10, state=LeaseState.ACTIVE, reason="", cut_at=0.0,
    execution=None, worker=None, incarnation=None,
)  # fmt: skip
CLAIMED = LeaseRecord(
    id="l2", run="r1", start=10, stop=20, state=LeaseState.ACTIVE, reason="", cut_at=0.0,
    execution="e1", worker="w1", incarnation="b1",
)  # fmt: skip


class Rounds:
    """A rule with its roster, and the leases that are out."""

    def __init__(self, *leases: LeaseRecord) -> None:
        self.roster = Roster(TIMEOUT_S)
        self.expiry = ExpiryRule(self.roster)
        self.leases = leases

    def record(self, now: float, *leases: str, incarnation: str = "b1") -> None:
        """Worker w1 speaks and names the leases that it has."""
        progress = Progress(
            worker="w1", incarnation=incarnation, at=0.0, leases={lease: [0] * 6 for lease in leases}
        )
        self.roster.record(progress, now, 0.0)

    def find_lost(self, now: float, *, closing: bool = False) -> list[tuple[str, ExpiryReason]]:
        """One round."""
        self.roster.remove_silent(now)
        return self.expiry.find_lost(self.leases, self.roster.find_listed(), now, closing=closing)


def test_a_lease_that_nobody_claims_is_lost_after_the_worker_timeout() -> None:
    """Every worker has a free slot for each lease that is out."""
    rounds = Rounds(UNCLAIMED)
    rounds.record(0.0)
    assert rounds.find_lost(0.0) == []
    rounds.record(10.0)
    assert rounds.find_lost(10.0) == []
    assert rounds.find_lost(10.1) == [("l1", ExpiryReason.NOT_CLAIMED)]


def test_a_lease_does_not_wait_for_a_worker_that_has_more_than_its_slots_hold() -> None:
    """Another one has both slots free, so the message must be lost."""
    four = [dataclasses.replace(CLAIMED, id=name) for name in ("l2", "l3", "l4", "l5")]
    rounds = Rounds(UNCLAIMED, *four)
    for now in (0.0, 10.0):
        rounds.record(now, "l2", "l3", "l4", "l5")
        rounds.roster.record(Progress(worker="w2", incarnation="b2", at=0.0), now, 0.0)
        assert rounds.find_lost(now) == []
    assert rounds.find_lost(10.1) == [("l1", ExpiryReason.NOT_CLAIMED)]


def test_a_lease_whose_claim_was_lost_is_left_to_the_worker_that_names_it() -> None:
    """Its report will come as long as it is named; a whole timeout later it will not."""
    rounds = Rounds(UNCLAIMED)
    for now in range(30):
        rounds.record(float(now), "l1")
        assert rounds.find_lost(float(now)) == []
    for now in range(30, 40):
        rounds.record(float(now))
        assert rounds.find_lost(float(now)) == []
    assert rounds.find_lost(39.1) == [("l1", ExpiryReason.NOT_CLAIMED)]


def test_a_lease_waits_in_the_queue_while_no_slot_is_free() -> None:
    """When a worker leaves, what was meant for it is taken up once another one has finished a lease."""
    full = [dataclasses.replace(CLAIMED, id=name) for name in ("l2", "l3")]
    rounds = Rounds(UNCLAIMED, *full)
    for now in range(100):
        rounds.record(float(now), "l2", "l3")
        assert rounds.find_lost(float(now)) == []
    rounds.leases = (UNCLAIMED, full[0])
    rounds.record(105.0, "l2")
    assert rounds.find_lost(105.0) == []
    rounds.record(109.5, "l2")
    assert rounds.find_lost(109.5) == [("l1", ExpiryReason.NOT_CLAIMED)]


def test_a_lease_waits_for_a_worker_as_long_as_there_is_none() -> None:
    """The first one that comes has a full time to take it."""
    rounds = Rounds(UNCLAIMED)
    assert rounds.find_lost(0.0) == []
    assert rounds.find_lost(1000.0) == []
    rounds.record(1000.5)
    assert rounds.find_lost(1000.5) == []
    rounds.record(1009.0)
    assert rounds.find_lost(1010.0) == []
    assert rounds.find_lost(1010.1) == [("l1", ExpiryReason.NOT_CLAIMED)]


def test_a_run_that_stops_does_not_wait_for_a_worker_that_never_comes() -> None:
    """An unclaimed lease is lost after the worker timeout, although nobody lives."""
    rounds = Rounds(UNCLAIMED)
    assert rounds.find_lost(0.0, closing=True) == []
    assert rounds.find_lost(10.0, closing=True) == []
    assert rounds.find_lost(10.1, closing=True) == [("l1", ExpiryReason.NOT_CLAIMED)]


def test_a_lease_of_a_living_worker_is_not_lost() -> None:
    """It may take as long as it likes."""
    rounds = Rounds(CLAIMED)
    for now in range(100):
        rounds.record(float(now), "l2")
        assert rounds.find_lost(float(now)) == []


def test_a_dead_workers_lease_is_lost_in_the_same_round() -> None:
    """It is known at once, and its name does not come back to life by it."""
    rounds = Rounds(CLAIMED)
    rounds.record(0.0, "l2")
    assert rounds.find_lost(10.0) == []
    assert rounds.find_lost(10.1) == [("l2", ExpiryReason.WORKER_LOST)]
    rounds.leases = ()
    assert rounds.roster.remove_silent(99.0) == []


def test_a_replaced_workers_lease_is_lost() -> None:
    """The process that had it is gone."""
    rounds = Rounds(CLAIMED)
    rounds.record(0.0, "l2")
    assert rounds.find_lost(0.0) == []
    rounds.record(1.0, incarnation="b2")
    assert rounds.find_lost(1.0) == [("l2", ExpiryReason.WORKER_LOST)]


def test_a_lease_that_its_worker_has_no_more_is_lost_without_its_report() -> None:
    """The worker timeout begins when it was named last."""
    rounds = Rounds(CLAIMED)
    rounds.record(0.0, "l2")
    rounds.find_lost(0.0)
    rounds.record(10.0)
    assert rounds.find_lost(10.0) == []
    assert rounds.find_lost(10.1) == [("l2", ExpiryReason.REPORT_LOST)]


def test_a_coordinator_that_comes_back_gives_every_lease_a_full_timeout() -> None:
    """It has heard nobody yet: a worker that the ledger names has the whole timeout to speak."""
    rounds = Rounds(UNCLAIMED, CLAIMED)
    assert rounds.find_lost(1000.0) == []
    assert rounds.find_lost(1010.0) == []
    assert rounds.find_lost(1010.1) == [("l2", ExpiryReason.WORKER_LOST)]


def test_a_worker_that_never_spoke_loses_all_that_it_has_at_once() -> None:
    """Its time begins when it is named first, by whatever lease."""
    rounds = Rounds(CLAIMED)
    assert rounds.find_lost(0.0) == []
    rounds.leases = (CLAIMED, dataclasses.replace(CLAIMED, id="l3"))
    assert rounds.find_lost(9.0) == []
    assert rounds.find_lost(10.1) == [("l2", ExpiryReason.WORKER_LOST), ("l3", ExpiryReason.WORKER_LOST)]


def test_a_coordinator_that_comes_back_finds_a_worker_replaced() -> None:
    """The name speaks with another incarnation than the lease has: the lease is lost after the timeout."""
    rounds = Rounds(CLAIMED)
    rounds.record(1000.0, incarnation="b2")
    assert rounds.find_lost(1000.0) == []
    rounds.record(1010.0, incarnation="b2")
    assert rounds.find_lost(1010.0) == []
    assert rounds.find_lost(1010.1) == [("l2", ExpiryReason.WORKER_LOST)]


def test_a_claim_begins_the_time_anew() -> None:
    """A lease that was claimed at the last moment is not lost with that of the wait."""
    rounds = Rounds(UNCLAIMED)
    rounds.record(0.0)
    assert rounds.find_lost(0.0) == []
    rounds.leases = (CLAIMED,)
    rounds.record(10.1)
    assert rounds.find_lost(10.1) == []


@pytest.mark.parametrize("lease", [UNCLAIMED, CLAIMED])
def test_a_round_in_which_nothing_could_be_heard_does_not_count(lease: LeaseRecord) -> None:
    """Every lease has its full time after it."""
    rounds = Rounds(lease)
    rounds.record(0.0)
    assert rounds.find_lost(0.0) == []
    rounds.roster.reset_timers(100.0)
    rounds.expiry.reset_timers(100.0)
    assert rounds.find_lost(100.0) == []
    rounds.record(110.0)
    assert rounds.find_lost(110.0) == []
    assert len(rounds.find_lost(110.1)) == 1

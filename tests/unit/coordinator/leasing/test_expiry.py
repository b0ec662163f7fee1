import msgspec
import pytest

from oku_coordinator.leasing.expiry import ExpiryRule, Remedy
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.progress import LeaseProgress, Progress

TIMEOUT_S = 10.0
LEASE = LeaseRecord(
    id="r1.000000001.a", run="r1", ranges=IndexRanges([(0, 10)]), worker="w1", incarnation="b1",
    cut_at=1000.0, limit=10, end=10, reported_end=10,
)  # fmt: skip


class World:
    """A roster and the rule; Unix time is 1000 s ahead of monotonic time."""

    def __init__(self) -> None:
        self.roster = Roster(TIMEOUT_S)
        self.rule = ExpiryRule(self.roster)

    def speak(self, now: float, *leases: LeaseRecord, incarnation: str = "b1") -> None:
        """Worker w1 names its leases."""
        progress = Progress(
            worker="w1", incarnation=incarnation, at=0.0,
            leases={lease.id: LeaseProgress(0, 10, build_no_counts()) for lease in leases},
        )  # fmt: skip
        self.roster.record(progress, now, 0.0)

    def judge(self, now: float, lease: LeaseRecord = LEASE) -> ExpiryReason | Remedy | None:
        """What is to be done about a lease."""
        return self.rule.judge(lease, now, 1000.0 + now)

    def judge_each_second(
        self, until: int, *, named_until: int = -1, lease: LeaseRecord = LEASE
    ) -> dict[int, ExpiryReason | Remedy]:
        """Let the worker speak and judge in each second; what was to be done, and when."""
        done: dict[int, ExpiryReason | Remedy] = {}
        for second in range(until + 1):
            self.speak(float(second), *([lease] if second <= named_until else []))
            if finding := self.judge(float(second), lease):
                done[second] = finding
        return done


@pytest.fixture
def world() -> World:
    """A lease was sent at 0 s."""
    world = World()
    world.rule.record_sent(LEASE.id, 0.0)
    return world


def test_a_lease_that_its_worker_names_is_well(world: World) -> None:
    """However long it takes."""
    assert world.judge_each_second(200, named_until=200) == {}


def test_a_lease_that_its_worker_does_not_name_is_sent_again_until_it_is_stale(world: World) -> None:
    """After three seconds each time; then it is drained, and at last nobody had it."""
    found = world.judge_each_second(72)
    assert [second for second, finding in found.items() if finding == Remedy.RESEND] == list(range(3, 61, 3))
    assert [second for second, finding in found.items() if finding == Remedy.DRAIN] == [63, 66, 69]
    assert {second: finding for second, finding in found.items() if isinstance(finding, ExpiryReason)} == {
        71: ExpiryReason.NOT_TAKEN, 72: ExpiryReason.NOT_TAKEN,
    }  # fmt: skip


def test_a_lease_is_not_sent_again_before_its_worker_has_spoken(world: World) -> None:
    """What it said last is from before the lease could have come."""
    world.speak(0.0)
    assert world.judge(9.0) is None
    world.speak(9.0)
    assert world.judge(9.0) == Remedy.RESEND


def test_a_lease_that_its_worker_names_no_longer_is_drained_and_then_dropped(world: World) -> None:
    """It is not sent again: the worker has had it."""
    found = world.judge_each_second(16, named_until=5)
    assert found == {8: Remedy.DRAIN, 11: Remedy.DRAIN, 14: Remedy.DRAIN, 16: ExpiryReason.DROPPED}


def test_a_lease_that_has_reported_was_taken(world: World) -> None:
    """Also if no heartbeat has named it, as for a coordinator that was restarted."""
    reported = msgspec.structs.replace(LEASE, sequence=1)
    found = world.judge_each_second(11, lease=reported)
    assert set(found.values()) == {Remedy.DRAIN, ExpiryReason.DROPPED}
    assert found[11] == ExpiryReason.DROPPED


def test_a_checkpoint_names_its_lease(world: World) -> None:
    """Its time begins anew."""
    assert world.judge_each_second(10, named_until=0)
    world.rule.record_named(LEASE.id, 10.0)
    world.speak(20.0)
    assert world.judge(20.0) == Remedy.DRAIN
    world.speak(20.1)
    assert world.judge(20.1) == ExpiryReason.DROPPED


def test_a_worker_that_falls_silent_has_dropped_nothing(world: World) -> None:
    """Its last word can be older than its checkpoint and come after it; then it dies, with the lease."""
    world.rule.record_named(LEASE.id, 1.0)
    world.speak(1.5)
    world.roster.remove_silent(11.2)
    assert world.judge(11.2) in (None, Remedy.DRAIN)
    world.roster.remove_silent(11.6)
    assert world.judge(11.6) == ExpiryReason.WORKER_LOST


def test_the_leases_of_a_dead_worker_are_lost(world: World) -> None:
    """Those of a process that another one has replaced are lost at once."""
    world.speak(0.0, LEASE)
    world.roster.remove_silent(10.1)
    assert world.judge(10.1) == ExpiryReason.WORKER_LOST
    world.speak(11.0, LEASE)
    assert world.judge(11.0) is None
    world.speak(12.0, incarnation="b2")
    assert world.judge(12.0) == ExpiryReason.WORKER_LOST


def test_a_worker_that_has_not_spoken_yet_has_a_full_timeout() -> None:
    """The coordinator was restarted: the ledger has named the worker, which may live."""
    world = World()
    assert world.judge(0.0) is None
    assert len(world.roster.remove_silent(10.0)) == 0
    assert len(world.roster.remove_silent(10.1)) == 1
    assert world.judge(10.1) == ExpiryReason.WORKER_LOST


def test_another_process_of_the_name_does_not_keep_leases_alive() -> None:
    """It has spoken before the coordinator knew of the old one."""
    world = World()
    world.speak(0.0, incarnation="b2")
    assert world.judge(0.0) is None
    assert world.judge(10.0) is None
    assert world.judge(10.1) == ExpiryReason.WORKER_LOST


def test_time_in_which_nobody_could_be_heard_does_not_count(world: World) -> None:
    """Every lease has its times anew."""
    world.speak(0.0, LEASE)
    assert world.judge(0.0) is None
    world.rule.reset_timers(100.0)
    world.speak(100.0)
    world.speak(110.0)
    assert world.judge(110.0) == Remedy.DRAIN
    world.speak(110.1)
    assert world.judge(110.1) == ExpiryReason.DROPPED


def test_leases_that_are_over_are_forgotten(world: World) -> None:
    """Otherwise memory would grow with the run."""
    world.judge_each_second(5, named_until=5)
    world.rule.forget_others([])
    world.speak(100.0)
    assert world.judge(100.0) is None

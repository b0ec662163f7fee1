from oku_coordinator.telemetry.settled_seconds import LONGEST_HOLD_S, SettledSeconds
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.progress import LeaseProgress, Progress


def hear(settled: SettledSeconds, worker: str, now: float, *leases: str) -> None:
    """A worker says which leases it has."""
    seen = {lease: LeaseProgress(taken=1, end=2, outcomes=build_no_counts()) for lease in leases}
    settled.record_progress(Progress(worker=worker, incarnation="i", at=now, leases=seen), now)


def test_all_is_settled_while_nobody_has_a_lease() -> None:
    """The time that a message takes is left out all the same."""
    settled = SettledSeconds("r1")
    settled.record_checkpoints("w1", 3.0, 10.0)
    hear(settled, "w1", 10.0)
    assert settled.find_end(12.0) == 11.5


def test_the_worker_that_has_not_reported_for_longest_decides() -> None:
    """Every worker counts from when it has leases until it has none, or is gone."""
    settled = SettledSeconds("r1")
    hear(settled, "w1", 10.0, "r1.2.1")
    hear(settled, "w2", 11.0, "r1.2.2")
    settled.record_checkpoints("w1", 3.0, 13.0)
    hear(settled, "w2", 13.5, "r1.2.2")
    assert settled.find_end(13.7) == 10.5
    settled.record_checkpoints("w2", 3.0, 14.0)
    assert settled.find_end(14.1) == 12.5
    hear(settled, "w1", 14.5)
    assert settled.find_end(14.6) == 13.5
    settled.forget_worker("w2")
    assert settled.find_end(14.7) == 14.2


def test_nothing_is_held_back_for_ever() -> None:
    """A worker that should have reported twice is not waited for, nor one of very many that report seldom."""
    settled = SettledSeconds("r1")
    hear(settled, "w1", 10.0, "r1.2.1")
    settled.record_checkpoints("w9", 3.0, 11.0)
    assert settled.find_end(15.0) == 9.5
    assert settled.find_end(18.0) == 12.0
    settled.record_checkpoints("w9", 50.0, 18.0)
    assert settled.find_end(100.0) == 100.0 - LONGEST_HOLD_S

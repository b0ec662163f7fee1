from oku_coordinator.workers.replay_guard import ReplayGuard
from oku_core.messaging.progress import Progress


def say(sequence: int, incarnation: str = "new", at: float = 1000.0, worker: str = "w1") -> Progress:
    """Progress of a process of a worker."""
    return Progress(worker=worker, incarnation=incarnation, at=at, sequence=sequence)


def test_each_progress_is_admitted_once() -> None:
    """A copy, and one that is older than the last, change nothing; what was lost is not waited for."""
    guard = ReplayGuard()
    heard = [1, 2, 2, 1, 5, 3, 5, 6]
    assert [guard.admits(say(number), 0.0) for number in heard] == [
        True, True, False, False, True, False, False, True,
    ]  # fmt: skip


def test_a_process_that_another_has_followed_does_not_come_back() -> None:
    """A copy or a delayed word does not replace it; otherwise the one that lives would count as gone."""
    guard = ReplayGuard()
    guard.admits(say(7, "old", at=1000.0), 0.0)
    assert guard.admits(say(1, "new", at=1003.0), 3.0)
    assert not guard.admits(say(3, "old", at=996.0), 4.0)
    assert not guard.admits(say(8, "old", at=1004.0), 4.0)
    assert guard.admits(say(2, "new", at=1004.0), 4.0)


def test_a_process_of_before_this_coordinator_does_not_replace_the_one_that_speaks() -> None:
    """It was never heard here, but its clock says that it is the older one."""
    guard = ReplayGuard()
    assert guard.admits(say(1, "new", at=1003.0), 0.0)
    assert not guard.admits(say(99, "old", at=990.0), 1.0)


def test_a_process_whose_clock_is_behind_is_admitted_when_the_one_before_it_is_silent() -> None:
    """Its machine's clock was put back between the two."""
    guard = ReplayGuard()
    guard.admits(say(9, "old", at=5000.0), 0.0)
    assert not guard.admits(say(1, "new", at=1400.0), 10.0)
    assert guard.admits(say(51, "new", at=1450.0), 60.0)


def test_workers_do_not_disturb_each_other() -> None:
    """Each has its own count and its own clock."""
    guard = ReplayGuard()
    guard.admits(say(9, "a", at=5000.0, worker="w1"), 0.0)
    assert guard.admits(say(1, "b", at=10.0, worker="w2"), 0.0)

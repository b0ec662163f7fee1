import msgspec
import pytest

from oku_coordinator.workers.liveness import Roster, choose_heartbeat_interval_s
from oku_core.messaging.progress import Progress

TIMEOUT_S = 10.0


@pytest.fixture
def roster() -> Roster:
    """Nobody lives yet."""
    return Roster(TIMEOUT_S)


def build_progress(
    worker: str = "w1", incarnation: str = "b1", *, leases: tuple[str, ...] = (), ended: int = 0,
    ahead_s: float = 0.0, stopping: bool = False,
) -> Progress:  # fmt: skip
    """A second of a worker; the coordinator's clock stands at 1000 s."""
    return Progress(
        worker=worker,
        incarnation=incarnation,
        at=1000.0 + ahead_s,
        leases={lease: [0] * 6 for lease in leases},
        outcomes=[ended, 0, 0, 0, 0, 0],
        stopping=stopping,
    )


def record(roster: Roster, progress: Progress, now: float) -> None:
    """The roster hears it."""
    roster.record(progress, now, 1000.0)


def names(roster: Roster) -> list[str]:
    """Who can take leases."""
    return [worker.name for worker in roster.workers()]


def test_a_worker_lives_from_its_first_event(roster: Roster) -> None:
    """Being named in the ledger does not make it live."""
    roster.enlist("w2", "b2", 0.0)
    assert (names(roster), len(roster)) == ([], 0)
    record(roster, build_progress("w1"), 0.0)
    record(roster, build_progress("w2", "b2"), 0.0)
    assert (sorted(names(roster)), len(roster)) == (["w1", "w2"], 2)


def test_a_worker_that_is_about_to_leave_gets_no_lease(roster: Roster) -> None:
    """It lives all the same."""
    record(roster, build_progress(stopping=True), 0.0)
    assert (names(roster), len(roster)) == ([], 1)


def test_silence_beyond_the_worker_timeout_is_death(roster: Roster) -> None:
    """One moment before it is not, and a word in between begins the time anew."""
    record(roster, build_progress(), 0.0)
    assert roster.remove_silent(10.0) == []
    record(roster, build_progress(), 10.0)
    assert roster.remove_silent(20.0) == []
    assert [worker.name for worker in roster.remove_silent(20.1)] == ["w1"]
    assert (names(roster), roster.is_gone("b1")) == ([], True)
    assert roster.remove_silent(99.0) == []


def test_a_worker_that_has_drained_has_left_after_three_heartbeats(roster: Roster) -> None:
    """It is not gone like a dead one: what it reported last may still be on its way."""
    record(roster, build_progress(leases=("l1",), stopping=True), 0.0)
    record(roster, build_progress(stopping=True), 1.0)
    assert roster.remove_silent(4.0) == []
    [left] = roster.remove_silent(4.1)
    assert (left.name, left.has_nothing_left, len(roster)) == ("w1", True, 0)
    assert not roster.is_gone("b1")
    assert not roster.has_dropped("w1", "l1", 0.0, 99.0)


def test_a_worker_that_is_about_to_leave_and_falls_silent_with_a_lease_is_dead(roster: Roster) -> None:
    """It was killed while it drained. A lease that was accounted meanwhile does not count."""
    for name in ("w1", "w2"):
        record(roster, build_progress(name, name, leases=(f"lease of {name}",), stopping=True), 0.0)
    roster.forget_leases(["lease of w1"])
    assert [(worker.name, worker.has_nothing_left) for worker in roster.remove_silent(4.0)] == [("w2", True)]
    assert roster.remove_silent(10.0) == []
    assert [(worker.name, worker.has_nothing_left) for worker in roster.remove_silent(10.1)] == [
        ("w1", False)
    ]
    assert roster.is_gone("w1")


def test_a_report_of_a_worker_that_drains_has_as_long_to_come_as_any(roster: Roster) -> None:
    """The worker no longer names the lease, and the ledger does not have its report yet."""
    record(roster, build_progress(leases=("l1",)), 0.0)
    record(roster, build_progress(stopping=True), 9.0)
    assert not roster.has_dropped("w1", "l1", 0.0, 10.0)
    assert roster.has_dropped("w1", "l1", 0.0, 10.1)


def test_where_workers_speak_less_often_one_has_left_later(roster: Roster) -> None:
    """It never leaves later than it would be dead."""
    for number in range(3000):
        roster.enlist(f"w{number}", f"b{number}", 0.0)
    record(roster, build_progress("w0", "b0", stopping=True), 100.0)
    roster.reset_timers(100.0)
    assert roster.heartbeat_interval_s == 3.0
    assert roster.remove_silent(109.0) == []
    assert [worker.name for worker in roster.remove_silent(109.1)] == ["w0"]
    short = Roster(1.0)
    record(short, build_progress(stopping=True), 0.0)
    assert short.remove_silent(2.5) == []
    assert [worker.name for worker in short.remove_silent(2.6)] == ["w1"]


def test_a_worker_that_was_only_named_dies_as_well(roster: Roster) -> None:
    """Its timeout begins when it is named first, however often it is named again."""
    roster.enlist("w1", "b1", 0.0)
    roster.enlist("w1", "b1", 9.0)
    assert [worker.name for worker in roster.remove_silent(10.1)] == ["w1"]


def test_a_round_in_which_nobody_could_be_heard_does_not_count(roster: Roster) -> None:
    """The coordinator stalled, or had no broker."""
    record(roster, build_progress(leases=("l1",)), 0.0)
    roster.reset_timers(100.0)
    assert roster.remove_silent(110.0) == []
    assert not roster.has_dropped("w1", "l1", 0.0, 110.0)
    assert roster.has_dropped("w1", "l1", 0.0, 110.1)
    assert len(roster.remove_silent(110.1)) == 1


def test_a_worker_that_was_declared_dead_and_speaks_lives_anew(roster: Roster) -> None:
    """Its process is not gone any more, and it has a full time."""
    record(roster, build_progress(), 0.0)
    roster.remove_silent(10.1)
    record(roster, build_progress(), 30.0)
    assert (names(roster), roster.is_gone("b1")) == (["w1"], False)
    assert roster.remove_silent(40.0) == []


def test_a_name_with_another_incarnation_has_replaced_the_old_process(roster: Roster) -> None:
    """A restarted worker is known by its name; what the old process had is lost at once."""
    record(roster, build_progress(incarnation="b1", ended=100), 0.0)
    record(roster, build_progress(incarnation="b2"), 1.0)
    assert (roster.is_gone("b1"), roster.is_gone("b2")) == (True, False)
    assert (roster.is_current("w1", "b1"), roster.is_current("w1", "b2")) == (False, True)
    assert roster.workers()[0].rate_rps is None
    assert not roster.is_current("w2", "b2")


def test_a_lease_that_a_living_worker_does_not_name_is_dropped(roster: Roster) -> None:
    """The worker timeout begins when it named it last, or with its claim."""
    record(roster, build_progress(leases=("l1",)), 2.0)
    assert not roster.has_dropped("w1", "l1", 0.0, 12.0)
    assert roster.has_dropped("w1", "l1", 0.0, 12.1)
    assert not roster.has_dropped("w1", "l2", 5.0, 15.0)
    assert roster.has_dropped("w1", "l2", 5.0, 15.1)


def test_a_worker_that_has_not_spoken_has_dropped_nothing(roster: Roster) -> None:
    """It may be dead, which is judged by other means."""
    roster.enlist("w1", "b1", 0.0)
    assert not roster.has_dropped("w1", "l1", 0.0, 99.0)
    assert not roster.has_dropped("w2", "l1", 0.0, 99.0)


def test_leases_are_listed_as_of_the_last_word(roster: Roster) -> None:
    """Those that were named before that are not listed."""
    record(roster, build_progress(leases=("l1", "l2")), 0.0)
    record(roster, build_progress("w2", "b2", leases=("l3",)), 0.5)
    record(roster, build_progress(leases=("l2",)), 1.0)
    assert roster.find_listed() == {"l2", "l3"}


def test_what_was_said_of_leases_that_are_over_is_forgotten(roster: Roster) -> None:
    """Otherwise the roster would grow with the run."""
    record(roster, build_progress(leases=("l1", "l2")), 0.0)
    roster.forget_leases(["l2", "l9"])
    assert roster.workers()[0].listed_at == {"l2": 0.0}


def test_a_rate_is_smoothed_over_the_seconds_with_requests(roster: Roster) -> None:
    """A second without an answer says nothing of it."""
    record(roster, build_progress(), 0.0)
    assert roster.workers()[0].rate_rps is None
    assert roster.measure_mean_rate() is None
    record(roster, build_progress(ended=1000), 1.0)
    assert roster.workers()[0].rate_rps == 1000
    record(roster, build_progress(ended=2000), 2.0)
    record(roster, build_progress(ended=0), 3.0)
    assert roster.workers()[0].rate_rps == pytest.approx(1300)


def test_the_mean_rate_is_of_those_whose_rate_is_known(roster: Roster) -> None:
    """A new worker is taken for an average one, and one that leaves does not count."""
    record(roster, build_progress("w1", "b1", ended=100), 0.0)
    record(roster, build_progress("w2", "b2", ended=300), 0.0)
    record(roster, build_progress("w3", "b3"), 0.0)
    record(roster, build_progress("w4", "b4", ended=9000, stopping=True), 0.0)
    assert roster.measure_mean_rate() == 200


def test_the_most_advanced_clock_counts(roster: Roster) -> None:
    """A lease must not look stale to a worker whose clock is ahead; one that is behind is no matter."""
    assert roster.measure_clock_ahead_s() == 0.0
    record(roster, build_progress("w1", "b1", ahead_s=-30.0), 0.0)
    roster.enlist("w2", "b2", 0.0)
    assert roster.measure_clock_ahead_s() == 0.0
    record(roster, build_progress("w2", "b2", ahead_s=20.0), 0.0)
    assert roster.measure_clock_ahead_s() == 20.0


@pytest.mark.parametrize(
    ("workers", "heartbeat_interval_s"),
    [(0, 1), (1, 1), (1000, 1), (1001, 2), (10_000, 10), (25_500, 26), (10**6, 30)],
)
def test_many_workers_speak_less_often(workers: int, heartbeat_interval_s: float) -> None:
    """A thousand of them speak each second, the others in turn."""
    assert choose_heartbeat_interval_s(workers) == heartbeat_interval_s


def test_who_speaks_less_often_may_be_silent_for_longer(roster: Roster) -> None:
    """The interval that a worker had last counts, so that a new order hurts nobody who has not heard it."""
    record(roster, build_progress("w1"), 0.0)
    record(roster, msgspec.structs.replace(build_progress("w2"), seconds=10.0), 0.0)
    record(roster, msgspec.structs.replace(build_progress("w3"), seconds=1e9), 0.0)
    assert [worker.name for worker in roster.remove_silent(10.1)] == ["w1"]
    assert roster.remove_silent(25.0) == []
    assert [worker.name for worker in roster.remove_silent(25.1)] == ["w2"]
    assert [worker.name for worker in roster.remove_silent(75.1)] == ["w3"]


def test_a_coordinator_that_comes_back_to_many_workers_waits_longer(roster: Roster) -> None:
    """It does not know their intervals yet, but the ledger names them."""
    for number in range(10_000):
        roster.enlist(f"w{number}", f"b{number}", 0.0)
    assert (roster.heartbeat_interval_s, roster.worker_timeout_s) == (10.0, 25.0)
    assert roster.remove_silent(25.0) == []
    assert len(roster.remove_silent(25.1)) == 10_000
    assert (roster.heartbeat_interval_s, roster.worker_timeout_s) == (1.0, TIMEOUT_S)


def test_a_worker_that_is_started_anew_replaces_one(roster: Roster) -> None:
    """One that was declared dead before is not replaced."""
    roster.record(Progress(worker="w1", incarnation="old", at=0.0), 0.0, 0.0)
    assert roster.find_replaced("w1", "old") is None
    assert roster.find_replaced("w2", "new") is None
    replaced = roster.find_replaced("w1", "new")
    assert replaced is not None
    assert replaced.incarnation == "old"

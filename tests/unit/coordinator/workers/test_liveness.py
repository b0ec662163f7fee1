import msgspec
import pytest
from tests.kit.outcomes import make_counts

from oku_coordinator.workers.liveness import ReplayGuard, Roster, choose_heartbeat_interval_s
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress

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
        leases={lease: LeaseProgress(1, 10, build_no_counts()) for lease in leases},
        runs={read_lease_run(lease): RunProgress(outcomes=make_counts(ended)) for lease in leases},
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
    roster.add_named("w2", "b2", 0.0)
    assert (names(roster), len(roster)) == ([], 0)
    record(roster, build_progress("w1"), 0.0)
    record(roster, build_progress("w2", "b2"), 0.0)
    assert (sorted(names(roster)), len(roster)) == (["w1", "w2"], 2)


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


def test_a_worker_that_is_about_to_leave_and_falls_silent_with_a_lease_is_dead(roster: Roster) -> None:
    """It was killed while it drained. A lease that was accounted meanwhile does not count."""
    for name in ("w1", "w2"):
        record(roster, build_progress(name, name, leases=(f"lease of {name}",), stopping=True), 0.0)
    roster.forget_lease("w2", "w2", "lease of w2")
    assert [(worker.name, worker.has_nothing_left) for worker in roster.remove_silent(4.0)] == [("w2", True)]
    assert roster.remove_silent(10.0) == []
    assert [(worker.name, worker.has_nothing_left) for worker in roster.remove_silent(10.1)] == [
        ("w1", False)
    ]
    assert roster.is_gone("w1")


def test_where_workers_speak_less_often_one_has_left_later(roster: Roster) -> None:
    """It never leaves later than it would be dead."""
    for number in range(3000):
        roster.add_named(f"w{number}", f"b{number}", 0.0)
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
    roster.add_named("w1", "b1", 0.0)
    roster.add_named("w1", "b1", 9.0)
    assert [worker.name for worker in roster.remove_silent(10.1)] == ["w1"]


def test_a_round_in_which_nobody_could_be_heard_does_not_count(roster: Roster) -> None:
    """The coordinator stalled, or had no broker."""
    record(roster, build_progress(leases=("l1",)), 0.0)
    roster.reset_timers(100.0)
    assert roster.remove_silent(110.0) == []
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
    assert roster.workers()[0].find_rate("r1").taken == 0
    assert not roster.is_current("w2", "b2")


@pytest.mark.parametrize(
    ("workers", "heartbeat_interval_s"),
    [(0, 1), (1, 1), (500, 1), (501, 2), (2000, 2), (2001, 3), (10_000, 10), (25_500, 26), (10**6, 30)],
)
def test_many_workers_speak_less_often(workers: int, heartbeat_interval_s: float) -> None:
    """A thousand of them speak each second, the others in turn; five hundred while they say all they know."""
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
        roster.add_named(f"w{number}", f"b{number}", 0.0)
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


def test_leases_are_those_of_the_last_word(roster: Roster) -> None:
    """Those that were named before that are not, nor those that the ledger has closed since."""
    record(roster, build_progress(leases=("l1", "l2", "l3")), 0.0)
    record(roster, build_progress("w2", "b2", leases=("l4",)), 0.5)
    record(roster, build_progress(leases=("l2", "l3")), 1.0)
    roster.forget_lease("w1", "b1", "l3")
    roster.forget_lease("w1", "another process", "l2")
    assert list(roster.list_leases()) == [("b1", "l2"), ("b2", "l4")]


def test_only_the_process_that_speaks_is_found(roster: Roster) -> None:
    """One that the ledger has named may be dead."""
    roster.add_named("w1", "b1", 0.0)
    assert roster.find("w1", "b1") is None
    record(roster, build_progress(), 1.0)
    assert roster.find("w1", "b1") is roster.workers()[0]
    assert roster.find("w1", "b2") is None


def test_a_worker_that_is_silent_while_others_speak_is_suspect(roster: Roster) -> None:
    """It is told of once, and is not suspect any more when it speaks."""
    for second in range(3):
        record(roster, build_progress("w2", "b2"), second)
        if not second:
            record(roster, build_progress(), 0.0)
    assert roster.mark_suspects(2.0) == []
    assert [worker.name for worker in roster.mark_suspects(2.1)] == ["w1"]
    assert roster.mark_suspects(2.2) == []
    record(roster, build_progress(), 2.3)
    assert [worker.is_suspect for worker in roster.workers()] == [False, False]


def test_nobody_is_suspect_when_nobody_is_heard(roster: Roster) -> None:
    """It is our own hearing that fails."""
    record(roster, build_progress(), 0.0)
    record(roster, build_progress("w2", "b2"), 0.0)
    assert roster.mark_suspects(2.1) == []
    roster.reset_timers(2.1)
    record(roster, build_progress(), 4.0)
    assert roster.mark_suspects(4.1) == []


def test_who_speaks_less_often_is_suspect_later(roster: Roster) -> None:
    """Two of its intervals must have passed."""
    record(roster, msgspec.structs.replace(build_progress(), seconds=10.0), 0.0)
    record(roster, build_progress("w2", "b2"), 20.0)
    assert roster.mark_suspects(20.0) == []
    assert [worker.name for worker in roster.mark_suspects(20.1)] == ["w1"]


def test_a_rate_is_that_of_the_run_that_the_worker_is_busy_with(roster: Roster) -> None:
    """A new run begins with none, and what was taken of the old one does not count."""
    for second in range(3):
        record(roster, build_progress(leases=("r1.000000001.a",), ended=1000), second)
    roster.record_taken(CheckpointBatch(worker="w1", incarnation="b1", run="r1", taken=3000, checkpoints=[]))
    [worker] = roster.workers()
    assert (round(worker.find_rate("r1").rate_rps or 0), worker.find_rate("r1").taken) == (1000, 3000)
    assert worker.find_rate("r2").rate_rps is None  # it has its turn now
    record(roster, build_progress(leases=("r1.000000002.a",), ended=1000), 2.5)
    for second in range(3, 6):
        record(roster, build_progress(leases=("r2.000000001.a",), ended=40), second)
    assert (round(worker.find_rate("r2").rate_rps or 0), worker.find_rate("r2").taken) == (40, 0)


def test_the_last_word_on_a_run_does_not_make_the_rate_of_the_next_forgotten(roster: Roster) -> None:
    """Its last checkpoints are confirmed while the next one has its turn already."""
    record(roster, build_progress(), 0.0)
    [worker] = roster.workers()
    assert worker.find_rate("r2").taken == 0
    for second in range(1, 4):
        record(roster, build_progress(leases=("r2.000000001.a",), ended=40), second)
    both = build_progress(leases=("r1.000000009.a", "r2.000000001.a"), ended=40)
    both.runs["r1"] = RunProgress(outcomes=make_counts(7000), in_flight=500)
    record(roster, both, 4.0)
    assert worker.rate.mean_in_flight == 0.0
    record(roster, build_progress(leases=("r1.000000009.a",), ended=7000), 5.0)
    for run, taken in (("r2", 120), ("r1", 7000)):
        roster.record_taken(
            CheckpointBatch(worker="w1", incarnation="b1", run=run, taken=taken, checkpoints=[])
        )
    assert (round(worker.find_rate("r2").rate_rps or 0), worker.find_rate("r2").taken) == (40, 120)


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

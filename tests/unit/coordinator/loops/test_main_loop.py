import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.celery_listeners import find_listeners
from tests.kit.coordinators.leases import build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.active_run import ActiveRuns
from oku_coordinator.assembly import Assembly
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.workers.repeated_orders import IntervalAnnouncer
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.process.supervision import Health
from oku_core.spec.spec import Spec
from oku_core.summary.tick import Tick

BUSY = Progress(
    worker="w1", incarnation="b1", at=0.0, runs={"r1": RunProgress(outcomes=make_counts(9), in_flight=5)}
)


@pytest.fixture
def ticks(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The ticks that are published."""
    ticks: list[Any] = []
    monkeypatch.setattr(parts.runs.followers, "publish", ticks.append)
    return ticks


async def take_first(followed: AsyncIterator[Tick | None]) -> None:
    """Follow a run to its first tick."""
    await anext(followed)


async def test_who_follows_a_run_is_told_of_its_end(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Followers are told although the last figures cannot be kept: that is tried until it can be done."""
    rests: list[None] = []
    monkeypatch.setattr(parts.runs.followers, "announce_rest", lambda: rests.append(None))
    ledger, loop = parts.base.ledger, parts.main_loop

    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    await loop.end_runs(read(ledger, fetch_run, "r1"))
    await loop.end_runs(change(ledger, change_state, "r1", RunState.RUNNING, 1.0))
    assert rests == []
    for function in ("keep_second", "put_summary", "put_summary"):
        with monkeypatch.context() as fault:
            fault.setattr(history, function, fail)
            with pytest.raises(sqlite3.OperationalError):
                await loop.end_runs(None)
    assert len(rests) == 2
    await loop.end_runs(None)
    await loop.end_runs(None)
    assert len(rests) == 3
    assert len(read(ledger, fetch_snapshot, "r1").processes) == 1


async def test_a_run_that_is_deleted_as_soon_as_it_is_over_holds_nobody_up(parts: Assembly) -> None:
    """Its last second cannot be kept; the next run has its turn all the same."""
    ledger, loop = parts.base.ledger, parts.main_loop
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    await loop.end_runs(change(ledger, change_state, "r1", RunState.RUNNING, 1.0))
    change(ledger, change_state, "r1", RunState.FAILED, 2.0)
    change(ledger, begin_deletion, "r1")
    change(ledger, create_run, "r2", Spec(requests=100), 3.0)
    await loop.end_runs(change(ledger, change_state, "r2", RunState.RUNNING, 4.0))
    await loop.end_runs(change(ledger, change_state, "r2", RunState.FAILED, 5.0))


async def test_a_clock_that_was_set_is_followed_once_the_last_second_is_kept(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may be over in the ledger before the main loop knows; its times are still those of one clock."""
    ledger, loop = parts.base.ledger, parts.main_loop
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    await loop.end_runs(change(ledger, change_state, "r1", RunState.RUNNING, 1.0))
    change(ledger, change_state, "r1", RunState.FAILED, 2.0)
    monkeypatch.setattr(parts.base.clock, "_wall", lambda: time.time() - 3600.0)
    began = time.time()
    await loop.step(time.monotonic())
    [sample] = read(ledger, fetch_history, "r1").samples
    assert abs(sample.at - began) < 60.0
    await loop.step(time.monotonic() + 2.0)
    assert abs(parts.base.clock.now() - (began - 3600.0)) < 60.0


def test_a_second_of_the_run_that_has_its_turn_is_published(parts: Assembly, ticks: list[Any]) -> None:
    """A run that waits for workers has ticks, too; without a run there is none."""
    parts.ticker.tick()
    assert ticks == []
    change(parts.base.ledger, create_run, "r1", Spec(requests=100), 0.0)
    parts.ticker.tick()
    assert [(tick.run, tick.state, tick.sample.pending) for tick in ticks] == [("r1", RunState.PENDING, 100)]


def test_what_workers_say_while_a_run_waits_is_in_no_tick(parts: Assembly, ticks: list[Any]) -> None:
    """The next run may be submitted before their last word on the one before it has come."""
    change(parts.base.ledger, create_run, "r1", Spec(requests=100), 0.0)
    parts.message_handler.handle_progress([BUSY])
    parts.ticker.tick()
    assert [(tick.sample.rate_rps, tick.sample.in_flight) for tick in ticks] == [(0.0, 0)]


async def test_a_run_that_waits_for_its_turn_has_ticks_while_somebody_follows_it(
    parts: Assembly, ticks: list[Any]
) -> None:
    """They say what it waits for, and nothing of what the workers do for another."""
    for run in ("r1", "r2", "r3"):
        change(parts.base.ledger, create_run, run, Spec(requests=100), 0.0)
    change(parts.base.ledger, change_state, "r1", RunState.RUNNING, 1.0)
    following = asyncio.create_task(take_first(parts.runs.followers.follow("r2")))
    await asyncio.sleep(0)
    find_listeners(parts).checkpoints.is_connected = True
    parts.message_handler.handle_progress([BUSY])
    parts.ticker.tick()
    following.cancel()
    assert [(tick.run, tick.sample.rate_rps, tick.sample.in_flight, tick.notices) for tick in ticks] == [
        ("r1", 9.0, 5, []),
        ("r2", 0.0, 0, ["waiting for its turn: run r1 is running"]),
    ]


async def test_a_worker_that_drained_is_told_apart_from_one_that_died(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody looks for a fault where there is none."""
    caplog.set_level("INFO")
    noted: list[tuple[str, str]] = []
    monkeypatch.setattr(
        parts.base.telemetry.recorder,
        "record_worker",
        lambda type_, worker, *_, **__: noted.append((type_, worker)),
    )
    parts.message_handler.handle_progress(
        [Progress(worker="drained", incarnation="b1", at=0.0, stopping=True)]
    )
    parts.message_handler.handle_progress([Progress(worker="died", incarnation="b2", at=0.0)])
    await parts.main_loop.step(time.monotonic() + 11.0)
    told = {
        (record.levelname, record.message.partition(":")[0])
        for record in caplog.records
        if "joined" not in record.message
    }
    assert told == {("INFO", "worker drained has left"), ("WARNING", "worker died is dead")}
    assert noted == [("worker_left", "drained"), ("worker_lost", "died")]


async def test_leases_are_swept_once_a_second_and_when_a_worker_comes_or_leaves(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not swept with each checkpoint: the cost would grow with both."""
    sweeps: list[None] = []
    times: list[float] = []
    monkeypatch.setattr(parts.main_loop.void_work, "sweep", lambda _: sweeps.append(None))

    async def step(now: float) -> None:
        before = len(sweeps)
        await parts.main_loop.step(now)
        times.extend([now] * (len(sweeps) - before))

    for now in (1.0, 1.1, 1.9, 2.0, 2.1):
        await step(now)
    for number, stopping in enumerate((False, False, True, True)):
        progress = Progress(worker="w1", incarnation="b1", at=0.0, sequence=number, stopping=stopping)
        parts.message_handler.handle_progress([progress])
        await step(2.2 + number / 10)
    assert times == [1.0, 2.0, 2.2, pytest.approx(2.4)]


async def test_workers_are_told_at_once_that_they_are_heard(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a listener has connected, the next round announces the interval, and workers answer that."""
    announced: list[tuple[float, float]] = []
    monkeypatch.setattr(
        parts.base.broker, "send_intervals", lambda *intervals_s, **_: announced.append(intervals_s)
    )
    parts.message_handler.interval_announcer = parts.main_loop.interval_announcer = IntervalAnnouncer(
        parts.base.broker, parts.base.clock_store, parts.installation.file_access
    )
    monkeypatch.setattr(find_listeners(parts).checkpoints, "is_connected", True)
    monkeypatch.setattr(find_listeners(parts).progress, "is_connected", True)
    now = time.monotonic()
    for _ in range(2):
        await parts.main_loop.step(now)
    assert announced == [(1.0, 3.0)]
    parts.message_handler.handle_connect()
    assert parts.base.signals.woken.is_set()
    await parts.main_loop.step(now)
    assert announced == [(1.0, 3.0)] * 2


async def test_workers_hear_where_files_are_before_they_are_to_fetch_any(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a fresh worker fails, and tries again half a second later."""
    told: list[str] = []
    active = parts.active_runs.open(change(parts.base.ledger, create_run, "r1", Spec(requests=100), 0.0))
    monkeypatch.setattr(parts.main_loop.interval_announcer, "announce", lambda *_: told.append("where"))
    monkeypatch.setattr(active.preparation, "send_needs", lambda *_: told.append("what"))
    await parts.main_loop.step(time.monotonic())
    assert told == ["where", "what"]


async def test_what_became_of_checkpoints_is_passed_on(parts: Assembly) -> None:
    """A closed lease is forgotten, what was taken is noted, and a round begins that visits the worker."""
    ledger = parts.base.ledger
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    lease = deal_lease(ledger, "r1", 10, 2.0)
    named = {lease.id: LeaseProgress(10, 10, build_no_counts())}
    parts.message_handler.handle_progress([Progress(worker="w1", incarnation="b1", at=0.0, leases=named)])
    parts.base.signals.woken.clear()
    batch = build_batch(lease, build_checkpoint(lease), taken=10)
    parts.message_handler.handle_receipts(change(ledger, fold_batches, [batch], parts.active_runs.allow, 5.0))
    assert list(parts.installation.roster.list_leases()) == []
    assert parts.installation.roster.workers()[0].find_rate("r1").taken == 10
    assert parts.base.signals.woken.is_set()


async def test_a_worker_that_refuses_before_it_has_taken_anything_is_barred(parts: Assembly) -> None:
    """It names no run then, but its leases do."""
    ledger = parts.base.ledger
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    await parts.main_loop.step(time.monotonic())
    lease = deal_lease(ledger, "r1", 10, 2.0)
    parts.message_handler.handle_progress([Progress(worker="w1", incarnation="b1", at=0.0, leases={})])
    refused = build_checkpoint(lease, 0, end=0, parts=[], refusal="no such file")
    batch = msgspec.structs.replace(build_batch(lease, refused), run="")
    parts.message_handler.handle_receipts(change(ledger, fold_batches, [batch], parts.active_runs.allow, 5.0))
    assert parts.installation.roster.find_barred("r1")


async def test_a_run_without_a_worker_is_given_up_but_not_for_an_outage(parts: Assembly) -> None:
    """The loop leaves out the time in which no worker could be heard."""
    ledger, loop, now = parts.base.ledger, parts.main_loop, time.monotonic()
    change(ledger, create_run, "r1", Spec(requests=100, give_up_after_s=30.0), 0.0)
    for passed_s in (0.0, 15.0):
        await loop.step(now + passed_s)
    loop.reset_timers(now + 115.0)
    await loop.step(now + 129.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PENDING
    await loop.step(now + 131.0)
    assert read(ledger, fetch_run, "r1").state == RunState.CANCELLED


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (sqlite3.DatabaseError("database disk image is malformed"), True),
        (sqlite3.OperationalError("database or disk is full"), False),
        (RuntimeError("unforeseen"), False),
    ],
)
async def test_only_a_broken_ledger_ends_the_coordinator(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, error: Exception, *, ends: bool
) -> None:
    """After any other error the loop begins again."""
    rounds: list[float] = []

    async def fail(now: float) -> None:
        rounds.append(now)
        if len(rounds) == 2:
            parts.base.signals.end()
        else:
            raise error

    monkeypatch.setattr(parts.main_loop, "step", fail)
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.0)
    task = parts.base.supervisor.start("dispatcher", parts.main_loop.run)
    with pytest.raises(sqlite3.DatabaseError, match="malformed") if ends else nullcontext():
        await parts.base.supervisor.wait(task)
    assert len(rounds) == (1 if ends else 2)


async def test_a_coordinator_whose_ledger_cannot_be_written_ends_when_it_is_told_to(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not even noted its start, and would try to for ever."""
    tries: list[None] = []

    def fail() -> None:
        tries.append(None)
        parts.base.signals.end()
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(parts.main_loop, "record_start", fail)
    await parts.base.supervisor.wait(parts.base.supervisor.start("dispatcher", parts.main_loop.run))
    assert len(tries) == 1


async def test_a_run_that_fails_does_not_end_the_coordinator(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who follows the run is told, and the next round begins."""
    rests: list[None] = []
    monkeypatch.setattr(parts.runs.followers, "announce_rest", lambda: rests.append(None))

    async def fail(_: float) -> None:
        if rests:
            parts.base.signals.end()
        parts.base.signals.wake()
        raise BreachError("r1", "10 are not 11")

    monkeypatch.setattr(parts.main_loop, "step", fail)
    await parts.main_loop.run(Health("dispatcher"))
    assert len(rests) == 2
    assert "run r1 does not balance: 10 are not 11" in caplog.text


async def test_a_round_reads_the_clock_once_the_account_of_its_run_is_in_memory(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with a rate would begin in the past: its first requests would be due before they are dealt."""
    loaded_at: list[float] = []
    rounds: list[float] = []

    async def load(_: ActiveRuns) -> None:
        loaded_at.append(time.monotonic())

    async def end(now: float) -> None:
        rounds.append(now)
        parts.base.signals.end()

    monkeypatch.setattr(ActiveRuns, "load", load)
    monkeypatch.setattr(parts.main_loop, "step", end)
    await parts.main_loop.run(Health("dispatcher"))
    assert sorted(loaded_at + rounds) == loaded_at + rounds
    assert len(loaded_at) == len(rounds) == 1


async def test_what_comes_in_during_a_round_is_for_the_next_one_at_once(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a worker would be idle until the next tick of the loop; when nothing came in, it waits."""
    woken: list[bool] = []

    async def be_woken(_: float) -> None:
        if not woken:
            parts.base.signals.wake()

    async def wait(*_: Any, **__: Any) -> None:
        woken.append(parts.base.signals.woken.is_set())
        if len(woken) == 2:
            parts.base.signals.end()

    monkeypatch.setattr(parts.main_loop, "step", be_woken)
    monkeypatch.setattr(parts.base.signals, "wait", wait)
    await parts.main_loop.run(Health("dispatcher"))
    assert woken == [True, False]


async def test_a_wait_ends_with_what_changes_and_with_the_end(parts: Assembly) -> None:
    """Without either it takes its time."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await parts.base.signals.wait(60.0)
    parts.base.signals.wake()
    await parts.base.signals.wait(60.0)
    parts.base.signals.woken.clear()
    parts.base.signals.end()
    await parts.base.signals.wait(60.0)


@pytest.mark.parametrize("listener", ["progress", "checkpoints"])
async def test_nobody_dies_while_more_waits_than_can_be_taken(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """A worker whose words wait in the broker has not been silent."""
    resets: list[float] = []
    monkeypatch.setattr(parts.installation.roster, "reset_timers", resets.append)
    getattr(parts.base.inbound, listener).caught_up_at -= 3.0

    async def end(_: float) -> None:
        parts.base.signals.end()

    monkeypatch.setattr(parts.main_loop, "step", end)
    await parts.main_loop.run(Health("dispatcher"))
    assert len(resets) == 1

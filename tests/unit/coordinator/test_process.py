import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.records import BreachError
from oku_coordinator.process import Coordinator, is_fatal
from oku_coordinator.settings import CoordinatorSettings
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health
from oku_core.spec.spec import Spec


@pytest.fixture
def settings(tmp_path: Path) -> CoordinatorSettings:
    """Of a coordinator whose broker is never asked."""
    return CoordinatorSettings(
        broker_url="redis://127.0.0.1:1", message_key=b"k" * 16, data_dir=tmp_path, token="t"
    )


@pytest.fixture
def coordinator(settings: CoordinatorSettings) -> Iterator[Coordinator]:
    """A coordinator that was not started."""
    coordinator = Coordinator(settings)
    coordinator._progress.is_connected = True
    yield coordinator
    coordinator._ledger.close()
    coordinator._lock.release()


@pytest.fixture
def ledger(coordinator: Coordinator) -> Ledger:
    """Its ledger."""
    return coordinator._ledger


def count_rests(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One item for each time that followers are told to look whether their run rests."""
    rests: list[None] = []
    monkeypatch.setattr(coordinator._runs, "announce_rest", lambda: rests.append(None))
    return rests


def test_a_ledger_has_one_coordinator(
    coordinator: Coordinator, settings: CoordinatorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one is refused after a while."""
    monkeypatch.setattr("oku_coordinator.process._LOCK_WAIT_S", 0.0)
    with pytest.raises(UserError, match="another coordinator holds this ledger"):
        Coordinator(settings)
    assert coordinator._ledger.runs.fetch_page() == []


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (sqlite3.DatabaseError("database disk image is malformed"), True),
        (sqlite3.OperationalError("database or disk is full"), False),
        (RuntimeError("unforeseen"), False),
    ],
)
async def test_only_a_broken_ledger_ends_the_coordinator(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, error: Exception, *, ends: bool
) -> None:
    """That does not pass by itself; a full disk may be emptied."""
    assert is_fatal(error) is ends
    rounds: list[float] = []

    async def fail(now: float) -> None:
        rounds.append(now)
        if len(rounds) == 2:
            coordinator.end()
        else:
            raise error

    monkeypatch.setattr(coordinator, "_round", fail)
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.0)
    task = coordinator._supervisor.start("dispatcher", coordinator._main_loop)
    with pytest.raises(sqlite3.DatabaseError, match="malformed") if ends else nullcontext():
        await coordinator._supervisor.wait(task)
    assert len(rounds) == (1 if ends else 2)


async def test_a_run_that_fails_does_not_end_the_coordinator(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who follows it is told, and the next round begins."""
    rests = count_rests(coordinator, monkeypatch)

    async def fail(_: float) -> None:
        if rests:
            coordinator._ending.set()
        coordinator._wake()
        raise BreachError("r1", "10 are not 11")

    monkeypatch.setattr(coordinator, "_round", fail)
    await coordinator._main_loop(Health("dispatcher"))
    assert len(rests) == 2
    assert "run r1 does not balance: 10 are not 11" in caplog.text


async def test_what_comes_in_during_a_round_is_for_the_next_one_at_once(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker would be idle until the clock strikes; and when nothing came in, the next one waits."""
    woken: list[bool] = []

    async def be_woken(_: float) -> None:
        if not woken:
            coordinator._wake()

    async def wait(*_: Any, **__: Any) -> None:
        woken.append(coordinator._woken.is_set())
        if len(woken) == 2:
            coordinator._ending.set()

    monkeypatch.setattr(coordinator, "_round", be_woken)
    monkeypatch.setattr("oku_coordinator.process.asyncio.wait", wait)
    await coordinator._main_loop(Health("dispatcher"))
    assert woken == [True, False]


async def test_who_follows_a_run_is_told_of_its_end(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its last figures cannot be kept: that is tried until it can be done."""
    rests = count_rests(coordinator, monkeypatch)

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    ledger.runs.create("r1", Spec(requests=100), 0.0)
    await coordinator._watch_end(ledger.runs.fetch("r1"))
    await coordinator._watch_end(ledger.runs.change_state("r1", RunState.RUNNING, 1.0))
    assert rests == []
    for room, place in (
        (ledger.history, "keep_sample"), (ledger.outbox, "put_summary"), (ledger.outbox, "put_summary"),
    ):  # fmt: skip
        with monkeypatch.context() as fault:
            fault.setattr(room, place, fail)
            with pytest.raises(sqlite3.OperationalError):
                await coordinator._watch_end(None)
    assert len(rests) == 2
    await coordinator._watch_end(None)
    await coordinator._watch_end(None)
    assert len(rests) == 3
    assert len(ledger.runs.fetch_snapshot("r1").processes) == 1


def test_a_second_of_the_run_that_has_its_turn_is_published(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that waits, too; without a run there is none."""
    ticks: list[Any] = []
    monkeypatch.setattr(coordinator._runs, "publish", ticks.append)
    coordinator._pulse.tick()
    assert ticks == []
    ledger.runs.create("r1", Spec(requests=100), 0.0)
    coordinator._pulse.tick()
    assert [(tick.run, tick.state, tick.pending) for tick in ticks] == [("r1", RunState.PENDING, 100)]


def test_what_workers_say_while_there_is_no_run_is_in_no_tick(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the last second of a run that has just come to rest."""
    ticks: list[Any] = []
    monkeypatch.setattr(coordinator._runs, "publish", ticks.append)
    coordinator._hear(
        [Progress(worker="w1", incarnation="b1", at=0.0, outcomes=[9, 0, 0, 0, 0, 0], in_flight=5)]
    )
    coordinator._pulse.tick()
    ledger.runs.create("r1", Spec(requests=100), 0.0)
    coordinator._pulse.tick()
    assert [(tick.rate_rps, tick.in_flight) for tick in ticks] == [(0.0, 0)]


def test_what_workers_say_while_a_run_waits_is_in_no_tick(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run may be submitted before their last word on the one before it has come."""
    ticks: list[Any] = []
    monkeypatch.setattr(coordinator._runs, "publish", ticks.append)
    ledger.runs.create("r1", Spec(requests=100), 0.0)
    coordinator._hear(
        [Progress(worker="w1", incarnation="b1", at=0.0, outcomes=[9, 0, 0, 0, 0, 0], in_flight=5)]
    )
    coordinator._pulse.tick()
    assert [(tick.rate_rps, tick.in_flight) for tick in ticks] == [(0.0, 0)]


def test_a_run_that_waits_for_its_turn_has_ticks_while_somebody_follows_it(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They say what it waits for, and nothing of what the workers do for another."""
    ticks: list[Any] = []
    monkeypatch.setattr(coordinator._runs, "publish", ticks.append)
    for run in ("r1", "r2", "r3"):
        ledger.runs.create(run, Spec(requests=100), 0.0)
    ledger.runs.change_state("r1", RunState.RUNNING, 1.0)
    coordinator._runs._followers[asyncio.Queue()] = "r2"
    coordinator._reports.is_connected = coordinator._progress.is_connected = True
    coordinator._hear(
        [Progress(worker="w1", incarnation="b1", at=0.0, outcomes=[9, 0, 0, 0, 0, 0], in_flight=5)]
    )
    coordinator._pulse.tick()
    assert [(tick.run, tick.rate_rps, tick.in_flight, tick.notices) for tick in ticks] == [
        ("r1", 9.0, 5, []),
        ("r2", 0.0, 0, ["waiting for its turn: run r1 is running"]),
    ]


async def test_a_worker_that_drained_is_told_apart_from_one_that_died(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody looks for a fault where there is none."""
    caplog.set_level("INFO")
    coordinator._interval_announcer._due_at = 1e9
    noted: list[tuple[str, str]] = []
    monkeypatch.setattr(
        coordinator._pulse._chronicle,
        "note_worker",
        lambda type_, worker, *_, **__: noted.append((type_, worker)),
    )
    coordinator._hear([Progress(worker="drained", incarnation="b1", at=0.0, stopping=True)])
    coordinator._hear([Progress(worker="died", incarnation="b2", at=0.0)])
    await coordinator._round(time.monotonic() + 11.0)
    told = {
        (record.levelname, record.message.partition(":")[0])
        for record in caplog.records
        if "is here" not in record.message
    }
    assert told == {("INFO", "worker drained has left"), ("WARNING", "worker died is dead")}
    assert noted[2:] == [("worker_left", "drained"), ("worker_lost", "died")]


@pytest.mark.parametrize("listener", ["_progress", "_reports"])
async def test_nobody_dies_while_more_waits_than_can_be_taken(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """Outage of workers whose words wait in the broker is none."""
    forgiven: list[float] = []
    monkeypatch.setattr(coordinator._roster, "forgive", forgiven.append)
    getattr(coordinator, listener).caught_up_at -= 3.0

    async def end(_: float) -> None:
        coordinator._ending.set()

    monkeypatch.setattr(coordinator, "_round", end)
    await coordinator._main_loop(Health("dispatcher"))
    assert len(forgiven) == 1


async def test_leases_are_looked_at_once_a_second_and_when_a_worker_comes(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with each report: the cost would grow with both."""
    coordinator._interval_announcer._due_at = 1e9
    looks: list[float] = []

    async def look(now: float) -> None:
        looks.append(now)

    monkeypatch.setattr(coordinator._lease_watch, "look", look)
    for now in (1.0, 1.1, 1.9, 2.0, 2.1):
        await coordinator._round(now)
    coordinator._hear([Progress(worker="w1", incarnation="b1", at=0.0)])
    await coordinator._round(2.2)
    assert looks == [1.0, 2.0, 2.2]

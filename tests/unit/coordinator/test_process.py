import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from oku_coordinator.broker import Broker, ProgressListener
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.record import BreachError
from oku_coordinator.process import Coordinator
from oku_coordinator.settings import CoordinatorSettings
from oku_core.errors import UserError
from oku_core.progress import Progress
from oku_core.run import RunState
from oku_core.spec import Spec


class BrokerTwin(Broker):
    """A broker in memory that remembers the orders to stop."""

    def __init__(self) -> None:
        self.stops: list[tuple[str | None, list[str], float]] = []

    def send_stop(self, *, run: str | None, leases: Sequence[str], grace_s: float) -> None:
        """Take an order to stop."""
        self.stops.append((run, list(leases), grace_s))


@pytest.fixture
def settings(tmp_path: Path) -> CoordinatorSettings:
    """Of a coordinator whose broker is never asked."""
    return CoordinatorSettings(broker_url="redis://127.0.0.1:1", data_dir=tmp_path, token="t")


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
    assert coordinator._ledger.fetch_runs() == []


async def test_a_ledger_that_cannot_be_used_is_tried_again_later_each_time(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk may be emptied, and the coordinator says what it waits for."""
    pauses: list[float] = []

    async def fail(_: float) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 7:
            coordinator._ending.set()

    monkeypatch.setattr(coordinator, "_round", fail)
    monkeypatch.setattr(coordinator, "_sleep", pause)
    await coordinator._main_loop()
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert "trying again in 0.5 s: database or disk is full" in caplog.text


async def test_a_ledger_that_is_broken_ends_the_coordinator(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That does not pass by itself."""

    async def fail(_: float) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(coordinator, "_round", fail)
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        await coordinator._main_loop()


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
    await coordinator._main_loop()
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
    await coordinator._main_loop()
    assert woken == [True, False]


async def test_workers_are_called_back_from_leases_that_nobody_waits_for(
    coordinator: Coordinator, ledger: Ledger
) -> None:
    """Those of a failed run, also while no run is active; once for each time that they name them."""
    twin = coordinator._broker = BrokerTwin()
    ledger.create_run("r1", Spec(requests=100), 0.0)
    ledger.change_state("r1", RunState.RUNNING, 1.0)
    lease = ledger.cut_lease("r1", 10, 2.0)
    assert lease is not None
    coordinator._hear(Progress(worker="w1", boot="b1", at=0.0, leases={lease.id: [0] * 6}))
    await coordinator._take_back_lost(0.0)
    assert twin.stops == []
    coordinator._hear(Progress(worker="w1", boot="b1", at=0.0, leases={lease.id: [0] * 6}))
    ledger.change_state("r1", RunState.FAILED, 3.0)
    await coordinator._take_back_lost(0.0)
    await coordinator._take_back_lost(0.0)
    assert twin.stops == [(None, [lease.id], 0.0)]


async def test_who_follows_a_run_is_told_of_its_end(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, although the servers' counts cannot be kept."""
    rests = count_rests(coordinator, monkeypatch)

    async def fail(_: str) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(coordinator._runs, "summarize", fail)
    ledger.create_run("r1", Spec(requests=100), 0.0)
    await coordinator._watch_end(ledger.fetch_run("r1"))
    await coordinator._watch_end(ledger.change_state("r1", RunState.RUNNING, 1.0))
    assert rests == []
    with pytest.raises(sqlite3.OperationalError):
        await coordinator._watch_end(None)
    await coordinator._watch_end(None)
    assert len(rests) == 1


def test_a_second_of_the_run_that_has_its_turn_is_published(
    coordinator: Coordinator, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that waits, too; without a run there is none."""
    ticks: list[Any] = []
    monkeypatch.setattr(coordinator._runs, "publish", ticks.append)
    coordinator._tick()
    assert ticks == []
    ledger.create_run("r1", Spec(requests=100), 0.0)
    coordinator._tick()
    assert [(tick.run, tick.state, tick.pending) for tick in ticks] == [("r1", RunState.PENDING, 100)]


@pytest.mark.parametrize("listener", ["_progress", "_reports"])
async def test_nobody_dies_while_more_waits_than_can_be_taken(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """Silence of workers whose words wait in the broker is none."""
    forgiven: list[float] = []
    monkeypatch.setattr(coordinator._roster, "forgive", forgiven.append)
    getattr(coordinator, listener).caught_up_at -= 3.0

    async def end(_: float) -> None:
        coordinator._ending.set()

    monkeypatch.setattr(coordinator, "_round", end)
    await coordinator._main_loop()
    assert len(forgiven) == 1


async def test_a_listener_that_waits_for_ever_is_replaced(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is stuck while it takes itself for connected; not before."""
    started: list[ProgressListener] = []

    def start(listener: ProgressListener) -> None:
        started.append(listener)

    monkeypatch.setattr(ProgressListener, "start", start)
    stuck = coordinator._progress
    coordinator._replace_stuck_listener(stuck._stirred_at + 9.0)
    assert coordinator._progress is stuck
    coordinator._replace_stuck_listener(stuck._stirred_at + 11.0)
    assert started == [coordinator._progress]
    assert coordinator._progress is not stuck
    assert "listening anew" in caplog.text


async def test_leases_are_looked_at_once_a_second_and_when_a_worker_comes(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with each report: the cost would grow with both."""
    coordinator._broker = BrokerTwin()
    coordinator._pacemaker._tell_at = 1e9
    looks: list[float] = []

    async def look(now: float) -> None:
        looks.append(now)

    monkeypatch.setattr(coordinator, "_take_back_lost", look)
    for now in (1.0, 1.1, 1.9, 2.0, 2.1):
        await coordinator._round(now)
    coordinator._hear(Progress(worker="w1", boot="b1", at=0.0))
    await coordinator._round(2.2)
    assert looks == [1.0, 2.0, 2.2]

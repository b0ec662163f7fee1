import asyncio
import sqlite3
from contextlib import nullcontext
from typing import Any

import pytest

from oku_coordinator.assembly import Assembly
from oku_coordinator.ledger.storage.records import BreachError
from oku_core.process.supervision import Health


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
            parts.signals.end()
        else:
            raise error

    monkeypatch.setattr(parts.rounds, "step", fail)
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.0)
    task = parts.supervisor.start("dispatcher", parts.main_loop.run)
    with pytest.raises(sqlite3.DatabaseError, match="malformed") if ends else nullcontext():
        await parts.supervisor.wait(task)
    assert len(rounds) == (1 if ends else 2)


async def test_a_coordinator_whose_ledger_cannot_be_written_ends_when_it_is_told_to(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not even noted its start, and would try to for ever."""
    tries: list[None] = []

    def fail() -> None:
        tries.append(None)
        parts.signals.end()
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(parts.rounds, "note_start", fail)
    await parts.supervisor.wait(parts.supervisor.start("dispatcher", parts.main_loop.run))
    assert len(tries) == 1


async def test_a_run_that_fails_does_not_end_the_coordinator(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who follows the run is told, and the next round begins."""
    rests: list[None] = []
    monkeypatch.setattr(parts.runs.followers, "announce_rest", lambda: rests.append(None))

    async def fail(_: float) -> None:
        if rests:
            parts.signals.end()
        parts.signals.wake()
        raise BreachError("r1", "10 are not 11")

    monkeypatch.setattr(parts.rounds, "step", fail)
    await parts.main_loop.run(Health("dispatcher"))
    assert len(rests) == 2
    assert "run r1 does not balance: 10 are not 11" in caplog.text


async def test_what_comes_in_during_a_round_is_for_the_next_one_at_once(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a worker would be idle until the next tick of the loop; when nothing came in, it waits."""
    woken: list[bool] = []

    async def be_woken(_: float) -> None:
        if not woken:
            parts.signals.wake()

    async def wait(*_: Any, **__: Any) -> None:
        woken.append(parts.signals.woken.is_set())
        if len(woken) == 2:
            parts.signals.end()

    monkeypatch.setattr(parts.rounds, "step", be_woken)
    monkeypatch.setattr(parts.signals, "wait", wait)
    await parts.main_loop.run(Health("dispatcher"))
    assert woken == [True, False]


async def test_a_wait_ends_with_what_changes_and_with_the_end(parts: Assembly) -> None:
    """Without either it takes its time."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await parts.signals.wait(60.0)
    parts.signals.wake()
    await parts.signals.wait(60.0)
    parts.signals.woken.clear()
    parts.signals.end()
    await parts.signals.wait(60.0)


@pytest.mark.parametrize("listener", ["progress", "checkpoints"])
async def test_nobody_dies_while_more_waits_than_can_be_taken(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """A worker whose words wait in the broker has not been silent."""
    resets: list[float] = []
    monkeypatch.setattr(parts.roster, "reset_timers", resets.append)
    getattr(parts.inbound, listener).caught_up_at -= 3.0

    async def end(_: float) -> None:
        parts.signals.end()

    monkeypatch.setattr(parts.rounds, "step", end)
    await parts.main_loop.run(Health("dispatcher"))
    assert len(resets) == 1

"""What can be done with runs: submit, list, show, pause, resume, cancel, and follow their ticks."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from oku_coordinator.ledger import Ledger
from oku_coordinator.record import RunRecord
from oku_coordinator.served import ServedCounter
from oku_coordinator.summaries import build_summary
from oku_core.progress import Tick
from oku_core.run import ACTIVE_STATES, FINAL_STATES, RunState
from oku_core.spec import Source, parse_spec
from oku_core.summary import Summary

_FOLLOWER_TICKS = 60


class Runs:
    """See the module.

    Args:
        ledger: where runs are kept.
        served: asks the delay servers what they counted.
        wake: called when a run has changed.
    """

    def __init__(self, ledger: Ledger, served: ServedCounter, wake: Callable[[], None]) -> None:
        self._ledger = ledger
        self._served = served
        self._wake = wake
        self._followers: set[asyncio.Queue[Tick | None]] = set()

    def submit(self, values: Mapping[str, Any]) -> RunRecord:
        """Enter a run for a spec under the names of `oku_core.spec.FIELDS`; `SpecError` when it is wrong."""
        record = self._ledger.create_run(
            build_run_id(time.time()), parse_spec(Source("spec", values)), time.time()
        )
        self._wake()
        return record

    def fetch_all(self) -> list[RunRecord]:
        """All runs, newest first."""
        return self._ledger.fetch_runs()

    def pause(self, run: str) -> RunRecord:
        """Stop dealing out a run; what is in flight may finish."""
        state = self._ledger.fetch_run(run).state
        return self._change(run, RunState.PAUSED if state == RunState.PENDING else RunState.PAUSING)

    def resume(self, run: str) -> RunRecord:
        """Put a paused run into the queue again; one that has not stopped goes on."""
        record = self._ledger.fetch_run(run)
        if record.state in (RunState.RUNNING, RunState.PENDING):
            return record
        return self._change(run, RunState.PENDING)

    def cancel(self, run: str) -> RunRecord:
        """End a run before its end; what is in flight may finish."""
        state = self._ledger.fetch_run(run).state
        return self._change(run, RunState.CANCELLING if state in ACTIVE_STATES else RunState.CANCELLED)

    async def summarize(self, run: str) -> Summary:
        """The summary of a run as it stands, with what the delay servers counted so far."""
        record = self._ledger.fetch_run(run)
        if record.spec.brings_servers:
            served = await self._served.fetch(run)
            if served is not None and served >= (record.served or 0):
                self._ledger.set_served(run, served)
        return build_summary(self._ledger.fetch_snapshot(run), time.time())

    def publish(self, tick: Tick) -> None:
        """Hand a tick to everybody who follows; who is too slow misses the oldest ones."""
        self._tell_followers(tick)

    def announce_rest(self) -> None:
        """A run has come to rest: let those who follow it find out."""
        self._tell_followers(None)

    async def follow(self, run: str) -> AsyncIterator[Tick]:
        """The ticks of a run until it is over or paused, about one a second."""
        queue: asyncio.Queue[Tick | None] = asyncio.Queue(_FOLLOWER_TICKS)
        self._followers.add(queue)
        try:
            while not _is_at_rest(self._ledger.fetch_run(run).state):
                tick = await queue.get()
                if tick is not None and tick.run == run:
                    yield tick
        finally:
            self._followers.discard(queue)

    def _change(self, run: str, state: RunState) -> RunRecord:
        record = self._ledger.fetch_run(run)
        if record.state == state:
            return record
        record = self._ledger.change_state(run, state, time.time())
        self._wake()
        if _is_at_rest(record.state):
            self.announce_rest()
        return record

    def _tell_followers(self, news: Tick | None) -> None:
        for queue in self._followers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(news)


def build_run_id(now: float) -> str:
    """A short id that sorts by time: date, time in UTC, and four random characters."""
    alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
    moment = datetime.fromtimestamp(now, UTC).strftime("%y%m%d-%H%M%S")
    return f"{moment}-{''.join(secrets.choice(alphabet) for _ in range(4))}"


def _is_at_rest(state: RunState) -> bool:
    return state in FINAL_STATES or state == RunState.PAUSED

"""Records the delay servers of a run, so that the sum of their counts is either valid or known to be invalid.

A server counts in a store: its memory, or a folder. The ledger records the stores of a run; a store that does
not answer at the end has lost its counts. To miss none, the servers are polled before the first lease of a
run and, behind a name, every few seconds while it is active. The replacement of a recorded server is noticed,
because the old one is missing; an additional server that came and went between two polls is not. After too
long without a poll, one is assumed: `UNSEEN`, which never answers. Each poll also announces the run, so that
a server keeps its count despite foreign names; if it cannot, `UNSEEN` is recorded, too.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence

from oku_coordinator.event_loop import BackgroundService, LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import work_table
from oku_coordinator.servers.served_count import ServedCounter, ServerCount
from oku_core.process.clock import Clock
from oku_core.process.supervision import Health, Supervisor

_log = logging.getLogger(__name__)

UNSEEN = ""
"""The store of a server that may have been there unnoticed."""
POLL_S = 5.0
_MOST_MISSES = 3
LONGEST_GAP_S = 30.0
"""Shorter than the life of a server that starts, joins DNS, is removed and stops."""


class ServerWatch(BackgroundService):
    """Polls the delay servers of the run that has its turn."""

    service_name = "delay servers"

    def __init__(
        self,
        counter: ServedCounter,
        ledger: Ledger,
        signals: LoopSignals,
        clock: Clock = time.time,
    ) -> None:
        self._counter = counter
        self._ledger = ledger
        self._signals = signals
        self._clock = clock
        self._seen: str | None = None
        """The run that was polled before its start."""
        self._misses = 0
        """Failed polls before a run."""
        self._is_asked = asyncio.Event()

    def start(self, supervisor: Supervisor) -> None:
        """Start watching; call it before anything can end the active run."""
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is not None and run.is_active:
            self._judge_gap(run)
        super().start(supervisor)

    def may_start(self, run: RunRecord) -> bool:
        """Whether the servers were polled, or the run needs none; if not, they are polled soon."""
        if not run.spec.brings_servers or self._seen == run.run:
            return True
        self._is_asked.set()
        return False

    async def check(self) -> None:
        """Poll the servers of the run that has its turn, once."""
        is_asked = self._is_asked.is_set()
        self._is_asked.clear()
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is None or not run.spec.brings_servers:
            self._seen = None
        elif run.is_active:
            await self._check_active(run)
        elif is_asked:
            await self._check_before(run)

    async def _check_before(self, run: RunRecord) -> None:
        if not await self._record_servers(run):
            self._misses += 1
            if self._misses < _MOST_MISSES:
                return  # a terminating server may not answer
            with self._ledger.change() as t:
                work_table.record_servers(t, run.run, [UNSEEN], self._clock())
        self._misses = 0
        self._seen = run.run
        self._signals.wake()

    async def _check_active(self, run: RunRecord) -> None:
        self._seen = run.run
        if not self._judge_gap(run):
            await self._record_servers(run)

    def _judge_gap(self, run: RunRecord) -> bool:
        """Whether polling is useless: servers are fixed, or were unwatched for too long."""
        if not run.spec.brings_servers or self._counter.is_fixed:
            return True
        with self._ledger.read() as t:
            seen_at = work_table.fetch_servers(t, run.run)
        if UNSEEN in seen_at:
            return True
        if self._clock() - max(seen_at.values(), default=0.0) <= LONGEST_GAP_S:
            return False
        _log.warning("the delay servers were not polled for too long", extra={"run": run.run})
        with self._ledger.change() as t:
            work_table.record_servers(t, run.run, [UNSEEN], self._clock())
        return True

    async def _record_servers(self, run: RunRecord) -> bool:
        answers = await self._counter.announce(run.run)
        if not answers:
            return False
        stores = {answer.store for answer in answers}
        if self._may_lack_requests(run, answers):
            _log.warning("a delay server may have forgotten requests", extra={"run": run.run})
            stores.add(UNSEEN)
        with self._ledger.change() as t:
            work_table.record_servers(t, run.run, stores, self._clock())
        return True

    def _may_lack_requests(self, run: RunRecord, answers: Sequence[ServerCount]) -> bool:
        """Whether the count of a run may have been displaced by foreign names.

        After its announcement it cannot. A server that joins an active run may have had requests before.
        """
        if not all(answer.kept for answer in answers):
            return True
        if not run.is_active:
            return False
        with self._ledger.read() as t:
            seen = work_table.fetch_servers(t, run.run)
        return any(answer.forgotten for answer in answers if answer.store not in seen)

    async def _work(self, health: Health) -> None:
        while True:
            await self.check()
            health.record_success()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._is_asked.wait()

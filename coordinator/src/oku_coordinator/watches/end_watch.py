"""Ends runs that came to rest: stores the counts of the delay servers, and wakes followers.

A delay server that does not answer may come back; the end of a run waits for it for a while.
"""

import time

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.runs import Runs
from oku_core.process.clock import Clock

_SERVERS_COME_BACK_S = 10.0
"""How long the end of a run waits for a delay server, which a supervisor restarts within 5 s."""


class EndWatch:
    """Stores the last figures of runs at rest, and retries until it has them."""

    def __init__(self, ledger: Ledger, runs: Runs, clock: Clock = time.monotonic) -> None:
        self._ledger = ledger
        self._runs = runs
        self._clock = clock
        self._resting: dict[str, float] = {}
        """Runs without their last figures, and how long to wait for a server."""

    @property
    def is_idle(self) -> bool:
        """Whether the last figures of all runs are stored."""
        return not self._resting

    def add(self, run: str) -> None:
        """Add a run that has come to rest."""
        self._resting.setdefault(run, self._clock() + _SERVERS_COME_BACK_S)

    def add_due_summaries(self) -> None:
        """Add the runs in the ledger that lack their last figures."""
        with self._ledger.read() as t:
            owing = run_table.list_due_summaries(t)
        for run in owing:
            self.add(run)

    async def step(self) -> None:
        """End each run that can be ended now; failures are retried in the next step."""
        for run, until in tuple(self._resting.items()):
            has_ended = True
            try:
                has_ended = await self._runs.end(run, waits=self._clock() < until)
            except UnknownRunError:
                pass  # it was deleted meanwhile
            finally:
                if has_ended:
                    self._runs.followers.announce_rest()
            if has_ended:
                del self._resting[run]

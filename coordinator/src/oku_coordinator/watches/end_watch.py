"""Ends the runs that came to rest: what the delay servers counted is kept, and followers are told.

A delay server that does not answer may come back; a run's end is held back for that for a while.
"""

import time

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.runs import Runs
from oku_core.process.clock import Clock

_SERVERS_COME_BACK_S = 10.0
"""A run's end waits this long for a delay server: the local stack restarts one within 5 s, a kubelet its
container at once."""


class EndWatch:
    """Keeps the last figures of runs at rest, and tries again until it has them."""

    def __init__(self, ledger: Ledger, runs: Runs, clock: Clock = time.monotonic) -> None:
        self._ledger = ledger
        self._runs = runs
        self._clock = clock
        self._resting: dict[str, float] = {}
        """Runs whose last figures have not been kept, and until when a server may come back first."""

    @property
    def is_idle(self) -> bool:
        """Whether the last figures of all runs have been kept."""
        return not self._resting

    def add(self, run: str) -> None:
        """A run has come to rest."""
        self._resting.setdefault(run, self._clock() + _SERVERS_COME_BACK_S)

    def add_due_summaries(self) -> None:
        """Add the runs that the ledger knows to lack their last figures."""
        with self._ledger.read() as t:
            owing = run_table.list_due_summaries(t)
        for run in owing:
            self.add(run)

    async def step(self) -> None:
        """End each run that can be ended now; what fails is tried again with the next step."""
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

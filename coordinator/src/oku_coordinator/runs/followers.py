"""Followers of runs: each gets the ticks of one run, about one a second, until the run has ended."""

import asyncio
import logging
from collections.abc import AsyncIterator

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.tables import run_table
from oku_core.summary.tick import Tick

_log = logging.getLogger(__name__)

_QUEUED_TICKS = 60
SILENCE_S = 2.0
"""How often a follower without a tick gets None: it may have gone, or missed an announcement."""


class Followers:
    """Passes ticks to the followers of runs.

    Args:
        ledger: has the states of runs.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._queues: dict[asyncio.Queue[Tick | None], str] = {}
        """A queue for each follower, with the run that it follows."""
        self._held_back: set[str] = set()

    def __len__(self) -> int:
        """The number of followers."""
        return len(self._queues)

    @property
    def runs(self) -> set[str]:
        """The runs with followers."""
        return set(self._queues.values())

    def publish(self, tick: Tick) -> None:
        """Pass a tick to all followers of its run; a slow follower misses the oldest ones."""
        self._put(tick)

    def announce_rest(self) -> None:
        """Wake followers because a run has come to rest."""
        self._put(None)

    def announce_breach(self, error: BreachError) -> None:
        """Log that a run has failed because it does not balance, and wake its followers."""
        _log.error("a run has failed", exc_info=error, extra={"run": error.run})
        self.announce_rest()

    def set_held(self, run: str, *, is_held: bool) -> None:
        """Keep the followers of a run at rest until its last figures are known, or release them."""
        (self._held_back.add if is_held else self._held_back.discard)(run)

    async def follow(self, run: str) -> AsyncIterator[Tick | None]:
        """Yield the ticks of a run until its rest is announced; None after a silence."""
        queue: asyncio.Queue[Tick | None] = asyncio.Queue(_QUEUED_TICKS)
        self._queues[queue] = run
        clock = asyncio.get_running_loop().time
        yielded_at, silences = clock(), 0
        has_ended = self._has_ended(run)
        try:
            while not has_ended:
                try:
                    async with asyncio.timeout_at(yielded_at + SILENCE_S):
                        tick = await queue.get()
                except TimeoutError:
                    yield None
                    yielded_at, silences = clock(), silences + 1
                    # A slow follower has lost the announcement.
                    has_ended = silences > 1 and self._is_at_rest(run)
                    continue
                if tick is None:
                    has_ended = self._has_ended(run)
                elif tick.run == run:
                    yield tick
                    yielded_at, silences = clock(), 0
        finally:
            del self._queues[queue]

    def _has_ended(self, run: str) -> bool:
        return self._is_at_rest(run) and run not in self._held_back

    def _is_at_rest(self, run: str) -> bool:
        with self._ledger.read() as t:
            return run_table.fetch_run(t, run).is_at_rest

    def _put(self, tick: Tick | None) -> None:
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(tick)

"""Orders of the main loop that are repeated, since one may be lost.

One sends all workers the time, the address of files, the run that has its turn, and their reporting interval:
longer if they are many. A worker without it reports each second, and answers the first one at once.

The other makes workers leave that have run user code, once its run is over: changes by the code must not
distort another run. Such a worker gets no work of another run (`WorkerState.can_take`), and a fresh process
replaces it.
"""

import math

from oku_coordinator.broker.sender import Broker
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.order import Control

_REPEAT_S = 5.0
_HURRIED_S = 1.0
_RENEW_S = 1.0


class IntervalAnnouncer:
    """Announces the intervals when one has changed, and again every few seconds."""

    def __init__(self, broker: Broker, clock_store: ClockStore, file_access: FileAccess) -> None:
        self._broker = broker
        self._clock_store = clock_store
        self._file_access = file_access
        self._announced: object = None
        self._due_at = -math.inf
        self._is_hurried = False

    def repeat(self) -> None:
        """Announce the intervals in the next round, for workers that have missed them."""
        self._due_at = -math.inf

    def repeat_soon(self) -> None:
        """Announce the intervals in the next round for a new worker, and again a second later.

        It reports before it listens, so it may miss the first announcement.
        """
        self.repeat()
        self._is_hurried = True

    def announce(self, heartbeat_s: float, checkpoint_s: float, now: float, run: str = "") -> None:
        """Announce the intervals, the clock and the run if that is due, at `now` in monotonic seconds."""
        clock, files = self._clock_store.describe(), self._file_access.address
        intervals = (heartbeat_s, checkpoint_s, clock, files, run)
        if self._broker.is_away or (intervals == self._announced and now < self._due_at):
            return
        pause_s = _HURRIED_S if self._is_hurried else _REPEAT_S
        self._announced, self._due_at, self._is_hurried = intervals, now + pause_s, False
        self._broker.send_intervals(heartbeat_s, checkpoint_s, clock=clock, files=files, run=run)


class Renewal:
    """Orders used workers to leave until they announce it."""

    def __init__(self, roster: Roster, broker: Broker) -> None:
        self._roster = roster
        self._broker = broker
        self._turn = ""
        self._renewed_at = -math.inf

    def renew_used(self, turn: str, now: float) -> None:
        """Order workers to leave that have run user code of another run than the active one."""
        if turn == self._turn and now - self._renewed_at < _RENEW_S:
            return
        self._turn, self._renewed_at = turn, now
        used = self._roster.find_used(turn)
        self._broker.send(Control(incarnation=worker.incarnation, renew=True) for worker in used)

"""Tells the workers what time it is, where files are, which run has its turn, and how often to speak.

They speak less often if there are many. One order tells all of them. It may be lost, so it is repeated. A
worker that has heard none sends progress each second, and answers the first that it hears at once.
"""

import math

from oku_coordinator.broker.sender import Broker
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.files.file_access import FileAccess

_REPEAT_S = 5.0
_HURRIED_S = 1.0


class IntervalAnnouncer:
    """Announces the intervals when one has changed, and again every few seconds.

    Args:
        broker: the way to the workers.
        clock_store: has the coordinator's clock.
        file_access: says where they fetch the files of runs, once that is known.
    """

    def __init__(self, broker: Broker, clock_store: ClockStore, file_access: FileAccess) -> None:
        self._broker = broker
        self._clock_store = clock_store
        self._file_access = file_access
        self._announced: object = None
        self._due_at = -math.inf
        self._is_hurried = False

    def repeat(self) -> None:
        """Announce the intervals in the next round, for those who have not heard of it."""
        self._due_at = -math.inf

    def repeat_soon(self) -> None:
        """Announce the intervals in the next round for one who has just come, and again a second later.

        It says that it is here before it listens, so it may miss the first time.
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

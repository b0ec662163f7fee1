"""Tells the workers how often to send progress and checkpoints: less often where there are many.

One order tells all of them. It may be lost, so it is repeated. A worker that has heard
none sends progress each second, and answers the first that it hears at once.
"""

import math

from oku_coordinator.broker.sender import Broker

_REPEAT_S = 5.0


class IntervalAnnouncer:
    """Announces the intervals when one has changed, and again every few seconds.

    Args:
        broker: the way to the workers.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._announced: tuple[float, float] | None = None
        self._due_at = -math.inf

    def repeat(self) -> None:
        """Announce the intervals with the next step, for those who have not heard of it."""
        self._due_at = -math.inf

    def step(self, heartbeat_s: float, checkpoint_s: float, now: float) -> None:
        """Announce the intervals if that is due, at `now` in monotonic seconds."""
        intervals = (heartbeat_s, checkpoint_s)
        if self._broker.is_away or (intervals == self._announced and now < self._due_at):
            return
        self._announced, self._due_at = intervals, now + _REPEAT_S
        self._broker.send_intervals(heartbeat_s, checkpoint_s)

"""Tells the workers how often to send progress: each second, or less often where there are many.

One order tells all of them. It may be lost, so it is repeated. A worker that has heard
none sends progress each second, and answers the first that it hears at once.
"""

import math

from oku_coordinator.broker.sender import Broker

_REPEAT_S = 5.0


class IntervalAnnouncer:
    """Announces the heartbeat interval when it has changed, and again every few seconds.

    Args:
        broker: the way to the workers.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._announced_s = 1.0
        self._due_at = -math.inf

    def repeat(self) -> None:
        """Announce the interval with the next step, for those who have not heard of it."""
        self._due_at = -math.inf

    def step(self, heartbeat_interval_s: float, now: float) -> None:
        """Announce the interval if that is due, at `now` in monotonic seconds."""
        if self._broker.is_away or (heartbeat_interval_s == self._announced_s and now < self._due_at):
            return
        self._announced_s, self._due_at = heartbeat_interval_s, now + _REPEAT_S
        self._broker.send_heartbeat_interval(heartbeat_interval_s)

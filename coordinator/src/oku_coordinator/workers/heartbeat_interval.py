"""Tells the workers how often to send progress: each second, or less often where there are many.

All are told by one order, which may be lost and is therefore repeated; who has heard none sends each second.
"""

import math

from oku_coordinator.broker.sender import Broker

_REPEAT_S = 5.0


class Pacemaker:
    """Tells the pace when it has changed, and again after a while.

    Args:
        broker: the way to the workers.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told_s = 1.0
        self._tell_at = -math.inf

    def step(self, heartbeat_interval_s: float, now: float) -> None:
        """Tell the pace if it is to be told, at `now` in monotonic seconds."""
        if self._broker.is_away or (heartbeat_interval_s == self._told_s and now < self._tell_at):
            return
        self._told_s, self._tell_at = heartbeat_interval_s, now + _REPEAT_S
        self._broker.send_pace(heartbeat_interval_s)

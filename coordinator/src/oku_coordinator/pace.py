"""How often workers are to send progress: each second, or less often where there are many.

All workers are told by one order, which may be lost and is therefore repeated; who has heard none sends each
second.
"""

import asyncio
import math

from oku_coordinator.broker import Broker

_EVENTS_PER_S = 1000
"""So many of all workers together cost the coordinator about a tenth of a core."""
_LONGEST_SILENCE = 0.8
"""In terms: nobody may be silent for a whole one."""


class Pacemaker:
    """Tells the pace when it has changed, and once in a term.

    Args:
        broker: the way to the workers.
        term_s: seconds in which a worker must be heard.
    """

    def __init__(self, broker: Broker, term_s: float) -> None:
        self._broker = broker
        self._term_s = term_s
        self._told_s = 1.0
        self._tell_at = -math.inf

    async def step(self, workers: int, now: float) -> None:
        """Tell so many workers what there is to tell, at `now` in monotonic seconds."""
        pace_s = choose_pace_s(workers, self._term_s)
        if pace_s == self._told_s and now < self._tell_at:
            return
        self._told_s, self._tell_at = pace_s, now + self._term_s
        await asyncio.to_thread(self._broker.send_pace, pace_s)


def choose_pace_s(workers: int, term_s: float) -> float:
    """How often each of so many workers is to send progress, in whole seconds; once a second at most."""
    return float(max(1, min(math.ceil(workers / _EVENTS_PER_S), math.floor(_LONGEST_SILENCE * term_s))))

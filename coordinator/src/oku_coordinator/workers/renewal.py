"""Replaces workers that have run user code by fresh processes, once its run is over.

What user code has changed in its worker must not distort another run, so such a worker gets nothing of any
other (`WorkerState.can_take`). It is told to leave as soon as its run no longer has its turn, so the next run
finds a fresh one. Orders may be lost, so they are repeated until the worker says that it leaves.
"""

import math
from dataclasses import dataclass, field

from oku_coordinator.broker.sender import Broker
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.order import Control

_REPEAT_S = 1.0


@dataclass(kw_only=True)
class Renewal:
    """Orders used workers to leave.

    Args:
        roster: knows which worker has run the user code of which run.
        broker: the way to the workers.
    """

    roster: Roster
    broker: Broker
    _turn: str = field(default="", init=False)
    _renewed_at: float = field(default=-math.inf, init=False)

    def renew_used(self, turn: str, now: float) -> None:
        """Order workers to leave that have run user code of another run than this one.

        Args:
            turn: the run that has its turn; empty if none has.
            now: monotonic seconds.
        """
        if turn == self._turn and now - self._renewed_at < _REPEAT_S:
            return
        self._turn, self._renewed_at = turn, now
        used = self.roster.find_used(turn)
        self.broker.send_controls(Control(incarnation=worker.incarnation, renew=True) for worker in used)

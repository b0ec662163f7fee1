"""How often workers report, and how far each may go ahead of the ledger: pure rules.

A worker never passes the limits of its leases. Each checkpoint raises them, far enough for the load to
continue while a coordinator restarts; the same figure bounds the cost of a worker's death.
"""

import math

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.spec.spec import Spec

SHORTEST_CHECKPOINT_S = 3.0
_CHECKPOINTS_PER_S = 200
"""Checkpoint messages of all workers together; they cost the coordinator about a third of a core."""
_MANY_WORKERS, _MANY_CHECKPOINTS_PER_S = 2_000, 50
"""The rate of workers beyond this number: the longer the interval of a message, the larger it is."""
_AWAY_S = 9.0
"""Beside the time until the next checkpoint: a coordinator may be down for 8 s, and its answer takes time."""
_REPEAT_SHARE = 1 / 3
"""A lost checkpoint is repeated after this share of a long interval."""
_CAREFUL_S = 30.0
"""For this long after the loss of a worker, the others go less far ahead: more may be lost."""
_CAREFUL_CHECKPOINT_S = 0.7
"""The interval of checkpoints during that time, unless there are many workers."""
_CAREFUL_CHECKPOINTS = 1.5
"""A worker asks for more when a third of its allowance is left, or 8 s of work if that is less."""
_GROWTH, _CAREFUL_GROWTH = 2.0, 0.5
_FIRST_S = 0.5
"""A worker whose rate is known may be ahead by this much of its work, however little it has done."""
_FIRST_WINDOWS, _CAREFUL_WINDOWS = 10, 4
"""The smallest allowance, in windows: until the coordinator knows the rate, the load goes on."""


def choose_checkpoint_s(workers: int) -> float:
    """The interval of a worker's checkpoints, for this many workers."""
    return max(SHORTEST_CHECKPOINT_S, _spread_checkpoints(workers))


def choose_allowance(first: int, ahead_s: float, growth: float, *, rate_rps: float, taken: int) -> int:
    """How many indices a worker may take beyond the position that the ledger knows.

    Slow start: it grows with the work done until it is worth `ahead_s`, so a worker that dies early costs
    little.

    Args:
        first: the smallest allowance.
        ahead_s: the work that it may be ahead, in seconds.
        growth: the allowance as a multiple of the work done.
        rate_rps: its requests per second; 0 while unknown.
        taken: the indices that it has taken of the run so far.
    """
    return max(first, math.ceil(min(ahead_s * rate_rps, growth * taken)))


class Pace:
    """The pace of the workers of one run; the event loop adjusts it, and any thread may read it."""

    def __init__(self) -> None:
        self.checkpoint_s = SHORTEST_CHECKPOINT_S
        """The interval of a worker's checkpoints."""
        self._workers = 1
        self._lost_at = -math.inf
        self._ahead_s = SHORTEST_CHECKPOINT_S + _AWAY_S
        self._careful_s = _CAREFUL_CHECKPOINTS * _CAREFUL_CHECKPOINT_S
        self._growth = _GROWTH
        self._is_careful = False

    def record_loss(self, now: float) -> None:
        """Record that a worker was lost with leases, at `now` in monotonic seconds."""
        self._lost_at = now

    def adjust(self, workers: int, now: float) -> None:
        """Adapt to the number of workers and to losses, at `now` in monotonic seconds."""
        self._workers = max(1, workers)
        self.checkpoint_s = choose_checkpoint_s(workers)
        self._is_careful = is_careful = now - self._lost_at < _CAREFUL_S
        # Rare checkpoints grant more each, or slow start would take minutes.
        rarity = self.checkpoint_s / SHORTEST_CHECKPOINT_S
        self._growth = rarity * (_CAREFUL_GROWTH if is_careful else _GROWTH)
        careful_s = _CAREFUL_CHECKPOINTS * max(_CAREFUL_CHECKPOINT_S, _spread_checkpoints(workers))
        usual_s = self.checkpoint_s + _AWAY_S + _REPEAT_SHARE * (self.checkpoint_s - SHORTEST_CHECKPOINT_S)
        self._careful_s = min(careful_s, usual_s)
        self._ahead_s = self._careful_s if is_careful else usual_s

    def allow(self, batch: CheckpointBatch, spec: Spec) -> int:
        """How far the sender of these checkpoints may go ahead of them."""
        window = spec.find_window(self._workers)
        return self.choose_allowance(spec, window, rate_rps=batch.rate_rps, taken=batch.taken)

    def choose_allowance(self, spec: Spec, window: int, *, rate_rps: float, taken: int) -> int:
        """How far a worker may go ahead now in a run; takes the arguments of `choose_allowance`.

        User code always gets the careful allowance: a repeated iteration repeats all of its requests.
        """
        ahead_s = self._careful_s if spec.runs_user_code else self._ahead_s
        first = (_CAREFUL_WINDOWS if self._is_careful or spec.runs_user_code else _FIRST_WINDOWS) * window
        if not self._is_careful:
            first = max(first, math.ceil(_FIRST_S * rate_rps))
        return choose_allowance(first, ahead_s, self._growth, rate_rps=rate_rps, taken=taken)


def _spread_checkpoints(workers: int) -> float:
    """The interval of messages for each of this many workers, in seconds."""
    beyond = max(0, workers - _MANY_WORKERS)
    return (workers - beyond) / _CHECKPOINTS_PER_S + beyond / _MANY_CHECKPOINTS_PER_S

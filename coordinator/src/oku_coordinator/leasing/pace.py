"""How often workers report, and how far each may go ahead of what the ledger knows: pure rules.

A worker never passes the limits of its leases. They are raised with each checkpoint, by so much that the load
goes on while a coordinator restarts; what a death may cost is bounded by the same figure.
"""

import math

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.spec.spec import Spec

SHORTEST_CHECKPOINT_S = 3.0
_CHECKPOINTS_PER_S = 200
"""Messages with checkpoints of all workers together; these cost the coordinator about a third of a core."""
_MANY_WORKERS, _MANY_CHECKPOINTS_PER_S = 2_000, 50
"""The same of those beyond so many: the longer the time that a message tells of, the larger it is."""
_AWAY_S = 9.0
"""Beside the time until the next checkpoint: a coordinator may be away for 8 s, and its answer takes time."""
_REPEAT_SHARE = 1 / 3
"""A checkpoint that is lost comes again after this share of a long interval."""
_CAREFUL_S = 30.0
"""For so long after a worker was lost the others go less far ahead: more may be lost."""
_CAREFUL_CHECKPOINT_S = 0.7
"""So often do workers then tell how far they are, unless there are many: they ask for more so soon."""
_CAREFUL_CHECKPOINTS = 1.5
"""A worker asks for more when a third of what it may take is left, or 8 s of work if that is less."""
_GROWTH, _CAREFUL_GROWTH = 2.0, 0.5
FIRST_WINDOWS = 4
"""The smallest allowance, in windows."""


def choose_checkpoint_s(workers: int) -> float:
    """The time from one checkpoint of a worker to the next, for this many workers."""
    return max(SHORTEST_CHECKPOINT_S, _spread_checkpoints(workers))


def choose_allowance(window: int, ahead_s: float, growth: float, *, rate_rps: float, taken: int) -> int:
    """How many indices a worker may take beyond those that the ledger knows it has taken.

    It grows with what was taken from a few windows on until it is worth `ahead_s` (slow start), so a worker
    that dies early costs little.

    Args:
        window: the requests that it may have in flight.
        ahead_s: the work that it may be ahead.
        growth: how many times what it has taken it may be ahead.
        rate_rps: what it does in a second; 0 while that is unknown.
        taken: what it has taken of the run so far.
    """
    return max(FIRST_WINDOWS * window, math.ceil(min(ahead_s * rate_rps, growth * taken)))


class Pace:
    """The pace of the workers of one run; the event loop adjusts it, and any thread may ask."""

    def __init__(self) -> None:
        self.checkpoint_s = SHORTEST_CHECKPOINT_S
        """The time from one checkpoint of a worker to the next."""
        self._workers = 1
        self._lost_at = -math.inf
        self._ahead_s = SHORTEST_CHECKPOINT_S + _AWAY_S
        self._careful_s = _CAREFUL_CHECKPOINTS * _CAREFUL_CHECKPOINT_S
        self._growth = _GROWTH

    def record_loss(self, now: float) -> None:
        """A worker was lost with leases, at `now` in monotonic seconds."""
        self._lost_at = now

    def adjust(self, workers: int, now: float) -> None:
        """Follow the number of workers and the losses, at `now` in monotonic seconds."""
        self._workers = max(1, workers)
        self.checkpoint_s = choose_checkpoint_s(workers)
        is_careful = now - self._lost_at < _CAREFUL_S
        # Where checkpoints are rare each brings more, or slow start would take minutes.
        rarity = self.checkpoint_s / SHORTEST_CHECKPOINT_S
        self._growth = rarity * (_CAREFUL_GROWTH if is_careful else _GROWTH)
        careful_s = _CAREFUL_CHECKPOINTS * max(_CAREFUL_CHECKPOINT_S, _spread_checkpoints(workers))
        usual_s = self.checkpoint_s + _AWAY_S + _REPEAT_SHARE * (self.checkpoint_s - SHORTEST_CHECKPOINT_S)
        self._careful_s = min(careful_s, usual_s)
        self._ahead_s = self._careful_s if is_careful else usual_s

    def allow(self, batch: CheckpointBatch, spec: Spec) -> int:
        """How far the worker that sent these checkpoints may go ahead of them."""
        window = spec.find_window(self._workers)
        return self.choose_allowance(spec, window, rate_rps=batch.rate_rps, taken=batch.taken)

    def choose_allowance(self, spec: Spec, window: int, *, rate_rps: float, taken: int) -> int:
        """How far a worker may go ahead now in a run of a spec; the other arguments are those of the rule.

        With user code it is always careful: an iteration that is carried out again makes all of its requests
        again.
        """
        ahead_s = self._careful_s if spec.runs_user_code else self._ahead_s
        return choose_allowance(window, ahead_s, self._growth, rate_rps=rate_rps, taken=taken)


def _spread_checkpoints(workers: int) -> float:
    """How often each of so many workers may send a message, in seconds."""
    beyond = max(0, workers - _MANY_WORKERS)
    return (workers - beyond) / _CHECKPOINTS_PER_S + beyond / _MANY_CHECKPOINTS_PER_S

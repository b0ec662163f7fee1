"""Each worker's share of a concurrency or a maximum rate that all workers have together.

A share is a worker's place among the live ones, and their number. It is sent when it changes, with each
answer to a checkpoint, and every few seconds: any message may be lost. All shares change when a worker joins
or leaves, so they change less often where there are many. A new worker has none and sends nothing.
"""

import math
from collections.abc import Sequence

from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.order import Control
from oku_core.spec.spec import Spec

Share = tuple[int, int]
"""A place from 0, and how many there are."""

_REPEAT_S = 3.0
_PER_SECOND = 500
"""The number of shares sent in a second."""


def is_shared(spec: Spec) -> bool:
    """Whether the workers of a run need shares; in open runs, waves contain them."""
    return not spec.is_open and (spec.max_rate is not None or spec.shares_concurrency)


class Shares:
    """The shares of one run; the event loop changes them, and any thread may read them."""

    def __init__(self) -> None:
        self._by_incarnation: dict[str, Share] = {}
        self._due_at = -math.inf
        self._next_change = -math.inf

    def find(self, incarnation: str) -> Share | None:
        """The share of a worker process; None if nothing is shared."""
        return self._by_incarnation.get(incarnation)

    def assign(self, spec: Spec, workers: Sequence[WorkerState], now: float) -> list[Control]:
        """Divide a run among workers; returns the messages to send at `now`, in monotonic seconds."""
        if not is_shared(spec) or now < self._next_change:
            return []
        ordered = sorted(workers, key=lambda worker: worker.name)
        shares = {worker.incarnation: (rank, len(ordered)) for rank, worker in enumerate(ordered)}
        if shares == self._by_incarnation and now < self._due_at:
            return []
        took_s = len(shares) / _PER_SECOND
        self._by_incarnation, self._due_at = shares, now + max(_REPEAT_S, took_s)
        self._next_change = now + took_s
        return [Control(incarnation=to, share=share) for to, share in shares.items()]

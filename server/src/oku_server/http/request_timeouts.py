"""Timeouts for requests that have begun to arrive and are not complete.

A load test may open thousands of connections from one address, so connections are not limited. But it sends
the head of a request at once, so few heads are incomplete: when there are too many, the oldest are refused.
"""

from typing import Protocol

from oku_server.behaviour.timing_wheel import Timers

HEAD_S = 10.0
"""How long after its first byte a head must be complete, in seconds."""
BODY_S = 60.0
"""How long a body may pause."""
MOST_HEADS = 1024
"""How many incomplete heads a process holds; each takes a few kB plus what its request has sent of it."""
_SWEEP_S = 1.0


class SlowRequest(Protocol):
    """A connection whose request is not complete."""

    def refuse_slow(self) -> bool:
        """Refuse the request because it takes too long; False if it is the server that makes it wait."""


class RequestTimeouts:
    """The incomplete requests of one process, in the order in which they time out."""

    def __init__(self, timers: Timers) -> None:
        self._call_later = timers.call_later
        self._clock = timers.monotonic
        self._head_due_at: dict[SlowRequest, float] = {}
        self._body_due_at: dict[SlowRequest, float] = {}
        self._is_watching = False

    def __len__(self) -> int:
        """How many requests are incomplete."""
        return len(self._head_due_at) + len(self._body_due_at)

    def watch_head(self, request: SlowRequest) -> None:
        """Watch a request of whose head a part has arrived, the first or a later one."""
        if request in self._head_due_at:
            return
        self._body_due_at.pop(request, None)
        self._head_due_at[request] = self._clock() + HEAD_S
        if len(self._head_due_at) > MOST_HEADS:
            self._refuse(next(iter(self._head_due_at)))
        self._set_timer()

    def watch_body(self, request: SlowRequest) -> None:
        """Watch a request whose head is complete but its body is not; a part of the body may have arrived."""
        self.remove(request)
        self._body_due_at[request] = self._clock() + BODY_S
        self._set_timer()

    def remove(self, request: SlowRequest) -> None:
        """Stop watching a request that is complete, or whose connection has ended."""
        self._head_due_at.pop(request, None)
        self._body_due_at.pop(request, None)

    def _set_timer(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._is_watching = False
        now = self._clock()
        for due_at in (self._head_due_at, self._body_due_at):
            overdue = []
            for request, at in due_at.items():
                if at > now:
                    break
                overdue.append(request)
            for request in overdue:
                self._refuse(request)
        if len(self):
            self._set_timer()

    def _refuse(self, request: SlowRequest) -> None:
        due_at, patience_s = (
            (self._head_due_at, HEAD_S) if request in self._head_due_at else (self._body_due_at, BODY_S)
        )
        self.remove(request)
        if not request.refuse_slow():
            due_at[request] = self._clock() + patience_s

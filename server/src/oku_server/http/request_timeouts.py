"""Timeouts for requests that have begun to arrive and are not complete.

A load test may open thousands of connections from one address, so connections are not limited. But it sends
the head of a request at once, so few heads are incomplete: when there are too many, the oldest are refused.
"""

from collections.abc import Callable
from typing import Protocol

HEAD_S = 10.0
"""How long after its first byte a head must be complete, in seconds."""
BODY_S = 60.0
"""How long a body may pause."""
MOST_HEADS = 1024
"""How many incomplete heads a process holds; each takes a few kB plus what its sender has sent of it."""
_LOOK_S = 1.0


class IncompleteRequest(Protocol):
    """A connection whose request is not complete."""

    def refuse_slow(self) -> bool:
        """Refuse the request because it takes too long; False if it is the server that makes it wait."""


class RequestTimeouts:
    """The incomplete requests of one process, in the order in which they time out.

    Args:
        set_timer: `call_later` of the event loop: calls a function after so many seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self, set_timer: Callable[[float, Callable[[], None]], object], clock: Callable[[], float]
    ) -> None:
        self._set_timer = set_timer
        self._clock = clock
        self._head_due_at: dict[IncompleteRequest, float] = {}
        self._body_due_at: dict[IncompleteRequest, float] = {}
        self._is_watching = False

    def __len__(self) -> int:
        """How many requests are incomplete."""
        return len(self._head_due_at) + len(self._body_due_at)

    def note_head(self, sender: IncompleteRequest) -> None:
        """Note that a part of a head has arrived, the first or a later one."""
        if sender in self._head_due_at:
            return
        self._body_due_at.pop(sender, None)
        self._head_due_at[sender] = self._clock() + HEAD_S
        if len(self._head_due_at) > MOST_HEADS:
            self._refuse(next(iter(self._head_due_at)))
        self._watch()

    def note_body(self, sender: IncompleteRequest) -> None:
        """Note that a head is complete but its body is not; a part of the body may have arrived."""
        self.remove(sender)
        self._body_due_at[sender] = self._clock() + BODY_S
        self._watch()

    def remove(self, sender: IncompleteRequest) -> None:
        """Stop watching a request that is complete, or whose connection has ended."""
        self._head_due_at.pop(sender, None)
        self._body_due_at.pop(sender, None)

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._set_timer(_LOOK_S, self._look)

    def _look(self) -> None:
        self._is_watching = False
        now = self._clock()
        for due_at in (self._head_due_at, self._body_due_at):
            overdue = []
            for sender, at in due_at.items():
                if at > now:
                    break
                overdue.append(sender)
            for sender in overdue:
                self._refuse(sender)
        if len(self):
            self._watch()

    def _refuse(self, sender: IncompleteRequest) -> None:
        due_at, patience_s = (
            (self._head_due_at, HEAD_S) if sender in self._head_due_at else (self._body_due_at, BODY_S)
        )
        self.remove(sender)
        if not sender.refuse_slow():
            due_at[sender] = self._clock() + patience_s

"""The feed of an engine: the requests of all executions, one execution after the other.

So the window of requests stays full between the end of one lease and the start of the next. `current` is the
execution whose request comes next. An execution at its limit is skipped until the limit is raised.
"""

from collections import deque
from collections.abc import Mapping

from oku_workers.executions.execution import NO_MARK, Execution
from oku_workers.feed.feed_protocol import NO_REQUESTER, LimitRequester, Parking, Taken, Taker


class Feed:
    """The requests still to send; belongs to the thread of the event loop.

    Args:
        low_parts: little is left to take when it is at most one of this many parts.
        requester: asks for higher limits when little is left.

    Attributes:
        phase: counts the requests taken now.
    """

    is_paced = False

    def __init__(self, low_parts: int = 3, requester: LimitRequester = NO_REQUESTER) -> None:
        self._low_parts = low_parts
        self._requester = requester
        self.current: Execution | None = None
        """The execution to take from; its `next_coordinate` is below its `stop`."""
        self.phase = ""
        self._order: deque[Execution] = deque()
        self._marked: Execution | None = None
        self._is_low = False
        self._parking = Parking()
        self.wait = self._parking.wait

    def add(self, execution: Execution) -> None:
        """Put an execution behind those that are there; one without an index is finished at once."""
        execution.finish_if_done()
        self._order.append(execution)
        if self.current is None and execution.begin_segment(self.phase):
            self.current = execution
        if self.current is not None:
            self._parking.wake_all()
        if execution.allowed < execution.untaken and self._marked is None and not self._is_low:
            self._set_mark()

    @property
    def lacks_work(self) -> bool:
        """Whether there is nothing to take."""
        return self.current is None

    @property
    def remaining(self) -> int:
        """How many indices may be taken now."""
        return sum(execution.allowed for execution in self._order)

    def find_first(self) -> Execution | None:
        """The execution to take from, now or once a limit allows it; None if nothing is left to take."""
        return self.current or next((each for each in self._order if each.untaken), None)

    def find_starved(self) -> Execution | None:
        """The first execution, if its limit keeps it from going on and nothing else can be taken."""
        return self.find_first() if self.current is None else None

    def count_first(self, within_s: float) -> int:  # noqa: ARG002  # nothing depends on time
        """It is not known: answers decide it."""
        return 0

    def pop(self) -> Taken:
        """Take the next request of `current`, of which there must be one."""
        execution = self.current
        assert execution is not None
        tally, coordinate, turns = execution.tally, execution.next_coordinate, execution.turns
        if turns is not None:
            tally = tally.by_target[turns[coordinate % len(turns)]]
        execution.next_coordinate = coordinate + 1
        if execution.next_coordinate == execution.stop:
            self.advance()
        return tally, coordinate, coordinate, 0

    def enter(self, phase: str) -> None:
        """Count requests in this phase from now on."""
        self.phase = phase
        if self.current is not None:
            self.current.enter(phase)

    def raise_limits(self, limits: Mapping[Execution, int]) -> None:
        """Let more be taken; a limit never falls."""
        for execution, limit in limits.items():
            execution.limit = max(execution.limit, limit)
        self._choose()
        self._set_mark()

    def shorten(self, execution: Execution, end: int) -> None:
        """Take no position of an execution from `end` on; positions already taken stay."""
        execution.shorten(end)
        if self.current is execution and execution.next_coordinate == execution.stop:
            self.advance()

    def refresh(self) -> None:
        """Nothing depends on time."""

    def attach(self, taker: Taker) -> None:
        """Nothing is due at a time: an engine takes as it has room."""

    def close(self) -> None:
        """End; there is nothing to do."""

    def advance(self) -> None:
        """Go on to the next segment, of this execution or of the next that may take."""
        execution = self.current
        if execution is not None:
            if execution is self._marked and execution.taken >= execution.mark:
                self._request_limits()
            if execution.begin_segment(self.phase):
                return
        self._choose()

    def _choose(self) -> None:
        """Take from the first execution that may, in the order in which they came."""
        order = self._order
        while order and not order[0].untaken:
            execution = order.popleft()
            execution.compact()
            if execution is self._marked:
                self._request_limits()
        self.current = next((execution for execution in order if execution.begin_segment(self.phase)), None)
        if self.current is not None:
            self._parking.wake_all()

    def _set_mark(self) -> None:
        """Mark where little is left to take, unless limits hold nothing back."""
        if self._marked is not None:
            self._marked.mark = NO_MARK
        self._marked, self._is_low = None, False
        left = self.remaining
        if left == sum(execution.untaken for execution in self._order):
            return
        ahead = left - int(min(left // self._low_parts, self._requester.find_reserve()))
        for execution in self._order:
            allowed = execution.allowed
            if 0 < ahead <= allowed:
                execution.mark = execution.taken + ahead
                self._marked = execution
                if execution is self.current:
                    execution.begin_segment(self.phase)
                return
            ahead -= allowed
        self._request_limits()

    def _request_limits(self) -> None:
        self._marked, self._is_low = None, True
        self._requester.request_limits()

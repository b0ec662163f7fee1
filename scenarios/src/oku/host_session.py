"""What a host knows of its iterations, whichever way it runs them; no I/O.

`receive` reads the bytes of the worker, and `encode_report` writes the reports to it. Between them,
`start_next` starts iterations, `end` ends them, and `record` counts requests.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from oku_core.messaging.checkpoint import LONGEST_NAME, LONGEST_TRACEBACK, OTHER_NAMES
from oku_core.process.redaction import redact
from oku_core.user_code.messages import (
    DROPPED,
    HANDED_FIELDS,
    MOST_AHEAD,
    NO_TEXT,
    OUTSIDE,
    UNTOUCHED,
    Cut,
    FrameReader,
    Hand,
    Report,
    SetUsers,
    ToHost,
    frame,
)
from oku_core.user_code.slots import Slots

MOST_NAMES = 200
"""How many names of requests a host tells apart; the rest counts under `OTHER_NAMES`."""
_MOST_REASONS = 500
_OTHER_REASONS = "other"
_MOST_TRACEBACKS = 50
_AHEAD_S = 0.04
"""Work for this long may wait in the host; handing out more takes less time."""
_NS_PER_US, _NS_PER_S = 1_000, 1_000_000_000


@dataclass(slots=True, eq=False)
class Iteration:
    """One iteration in the hands of a host.

    Attributes:
        slot: its slot.
        index: its index in the request space.
        due_ns: when it was due, in nanoseconds of the monotonic clock; 0 without a due time.
        begun_ns: when it began; 0 before.
        failure: the first request or check of it that failed, in one line; empty if none did.
    """

    slot: int
    index: int
    due_ns: int
    begun_ns: int = 0
    failure: str = ""


class RequestResult(NamedTuple):
    """The result of one request.

    Attributes:
        name: what it is counted under.
        outcome: as in `oku_core.accounting.outcome.OUTCOMES`.
        status: its status; 0 without one.
        latency_us: how long it took.
        received: the bytes of its body.
        reason: why it is not ok, in one line.
    """

    name: str
    outcome: int
    status: int
    latency_us: int
    received: int = 0
    reason: str = ""


class HostSession:
    """The iterations of one host.

    Args:
        slots: shared with the worker.
        users: how many iterations may be under way.
        is_ahead: whether some more may wait here than can begin at once.
        now_ns: the monotonic clock.

    Attributes:
        users: as given, or as the worker has said since.
        busy_us: how long the host ran or waited for a processor so far; the host measures it.
        late_us: how late the event loop of the host was at the worst since the last report.
    """

    def __init__(
        self, slots: Slots, users: int, *, is_ahead: bool, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.users = users
        self.busy_us = self.late_us = 0
        self._slots = slots
        self._is_ahead = is_ahead
        self._now_ns = now_ns
        self._reader = FrameReader(ToHost)
        self._waiting: deque[Iteration] = deque()
        self._under_way: dict[int, Iteration] = {}
        self._asked = self._changes = 0
        self._names: dict[str, int] = {}
        self._reasons: dict[str, int] = {}
        self._texts = 0
        self._new_texts: list[str] = []
        self._tracebacks: dict[int, str] = {}
        self._traced: set[int] = set()
        self._requests: list[int] = []
        self._ended: list[int] = []
        self._ended_count = 0
        self._counted_at_ns = now_ns()
        self._rate = 0.0

    @property
    def waiting(self) -> int:
        """How many iterations were handed out and have not begun."""
        return len(self._waiting)

    @property
    def has_news(self) -> bool:
        """Whether anything has ended since the last report."""
        return bool(self._ended or self._requests)

    def receive(self, data: bytes) -> list[object]:
        """Take in bytes of the worker; returns the messages that the host has to act on.

        These are `Cut` (with the slots of iterations that are under way alone: the others are dropped here),
        `SetUsers` (`users` is set already) and `Stop`.
        """
        left: list[object] = []
        for message in self._reader.feed(data):
            if isinstance(message, Hand):
                self._add_waiting(message.iterations)
                continue
            if isinstance(message, SetUsers):
                self.users, self._asked = message.users, 0
                self._changes += 1
            elif isinstance(message, Cut):
                message = Cut(self._drop_waiting(message.slots))  # noqa: PLW2901
            left.append(message)
        return left

    def start_next(self) -> Iteration | None:
        """Begin the next iteration; None if none waits."""
        if not self._waiting:
            return None
        iteration = self._waiting.popleft()
        iteration.begun_ns = now_ns = self._now_ns()
        self._slots.start(iteration.slot, now_ns)
        self._under_way[iteration.slot] = iteration
        return iteration

    def find(self, slot: int) -> Iteration | None:
        """The iteration under way in a slot; None if it has ended."""
        return self._under_way.get(slot)

    def end(self, iteration: Iteration, outcome: int, reason: str = "", traceback: str = "") -> None:
        """An iteration has ended; one that has is not ended again.

        Args:
            iteration: which one.
            outcome: as in `oku_core.accounting.outcome.OUTCOMES`, or `DROPPED` if it was cut off.
            reason: why it is not ok, in one line.
            traceback: of the exception that ended it.
        """
        if self._under_way.get(iteration.slot) is not iteration:
            return
        del self._under_way[iteration.slot]
        number = self._intern_reason(reason) if reason else NO_TEXT
        if traceback and number not in self._traced and len(self._traced) < _MOST_TRACEBACKS:
            self._traced.add(number)
            self._tracebacks[number] = redact(traceback)[:LONGEST_TRACEBACK]
        took_us = max(0, self._now_ns() - iteration.begun_ns) // _NS_PER_US
        self._ended += (iteration.slot, outcome, iteration.begun_ns, took_us, number)
        self._ended_count += 1

    def record(self, iteration: Iteration | None, result: RequestResult) -> None:
        """A request has ended.

        Args:
            iteration: in which it was made; None for one outside of any, or whose iteration has ended.
            result: of the request.
        """
        slot = OUTSIDE
        if iteration is not None and self._under_way.get(iteration.slot) is iteration:
            slot = iteration.slot
        name, outcome, status, latency_us, received, reason = result
        number = self._names.get(name)
        if number is None:
            number = self._intern_name(name)
        why = self._intern_reason(reason) if reason else NO_TEXT
        self._requests += (slot, number, outcome, status, latency_us, received, why)

    def encode_report(self, idle: int, users: int = 0) -> bytes:
        """What there is to say, as bytes for the worker; also without news, as a sign of life.

        Args:
            idle: how many users could begin an iteration now, if one waited.
            users: how many there are, with those that stop after their iteration.
        """
        self._measure()
        ahead = min(int(self._rate * _AHEAD_S), MOST_AHEAD) if self._is_ahead else 0
        wanted = max(0, idle + ahead - len(self._waiting) - self._asked)
        self._asked += wanted
        report = Report(
            wanted, self._new_texts, self._tracebacks, self._requests, self._ended,
            time.process_time_ns() // _NS_PER_US, self.busy_us, self.late_us,
            max(0, idle - len(self._waiting)), max(self.users, users), self._changes,
        )  # fmt: skip
        self.late_us = 0
        self._new_texts, self._tracebacks, self._requests, self._ended = [], {}, [], []
        return frame(report)

    def wants_more(self, idle: int) -> bool:
        """Whether users are idle for whom nothing waits and nothing was asked for yet."""
        return idle > len(self._waiting) + self._asked

    def _add_waiting(self, numbers: list[int]) -> None:
        handed = iter(numbers)
        for slot, index, due_ns in zip(handed, handed, handed, strict=True):
            self._waiting.append(Iteration(slot, index, due_ns))
        self._asked = max(0, self._asked - len(numbers) // HANDED_FIELDS)

    def _drop_waiting(self, slots: list[int]) -> list[int]:
        """Drop those of these iterations that wait; returns the slots of those that are under way."""
        named = set(slots)
        dropped = [iteration for iteration in self._waiting if iteration.slot in named]
        if dropped:
            self._waiting = deque(each for each in self._waiting if each.slot not in named)
        for iteration in dropped:
            self._ended += (iteration.slot, UNTOUCHED, 0, 0, NO_TEXT)
        return [slot for slot in slots if slot in self._under_way]

    def drop(self, iteration: Iteration) -> None:
        """An iteration that was under way was cut off."""
        self.end(iteration, DROPPED)

    def _measure(self) -> None:
        """How many iterations end in a second, as of late."""
        now_ns = self._now_ns()
        if (passed_ns := now_ns - self._counted_at_ns) >= _NS_PER_S // 10:
            self._rate = self._ended_count * _NS_PER_S / passed_ns
            self._ended_count, self._counted_at_ns = 0, now_ns

    def _intern_name(self, name: str) -> int:
        if len(self._names) >= MOST_NAMES:
            name = OTHER_NAMES
            if (known := self._names.get(name)) is not None:
                return known
        number = self._names[name] = self._add_text(name)
        return number

    def _intern_reason(self, reason: str) -> int:
        number = self._reasons.get(reason)
        if number is None:
            if len(self._reasons) >= _MOST_REASONS:
                reason = _OTHER_REASONS
                if (known := self._reasons.get(reason)) is not None:
                    return known
            number = self._reasons[reason] = self._add_text(reason)
        return number

    def _add_text(self, text: str) -> int:
        self._new_texts.append(redact(str(text))[:LONGEST_NAME])  # user code may name what is no text
        self._texts += 1
        return self._texts - 1

"""What becomes of one request: how long it waits, what is written then, and how the connection goes on."""

import math
from enum import Enum, auto
from typing import NamedTuple

from oku_server.behaviour.fault import Fault
from oku_server.behaviour.plan import Plan
from oku_server.http.answer import CLOSE, Answer, Buffers, build_error, build_ok

MOST_READY = 256
READY_LIMIT_BYTES = 1024
"""How many replies are kept ready, one for each delay, and how long their body may be."""


class Ending(Enum):
    """What comes after an answer."""

    OPEN = auto()
    """The connection takes the next request."""
    CLOSE = auto()
    """The connection is closed in order."""
    RESET = auto()
    """The connection is reset, nothing is written."""
    NEVER = auto()
    """There is no answer, as long as the client may wait."""


class Reply(NamedTuple):
    """Seconds to wait, what to write, and what comes after it."""

    delay_s: float
    buffers: Buffers
    ending: Ending


_STALL = Reply(math.inf, (), Ending.NEVER)


class Replies:
    """The replies of one server process to requests that are no questions to itself.

    Args:
        body: of a proper answer.
    """

    def __init__(self, body: bytes) -> None:
        self._ok = build_ok(body)
        self._error = build_error()
        self._ready: dict[float, Reply] = {}
        self._is_short = len(body) <= READY_LIMIT_BYTES

    def find_ok(self, delay_s: float) -> Reply:
        """A proper answer, whole, to a request that leaves its connection open."""
        return self._ready.get(delay_s) or self._make_ready(delay_s)

    def build(self, plan: Plan, *, is_head: bool, connection: bytes) -> Reply:
        """What a plan says, for any kind of request.

        Args:
            plan: of the request.
            is_head: whether its method is HEAD.
            connection: the header that tells what comes of the connection, `CLOSE`, `KEEP_ALIVE` or nothing.
        """
        delay_s, fault = plan
        if fault is Fault.STALL:
            return _STALL
        if fault is Fault.RESET:
            return Reply(delay_s, (), Ending.RESET)
        answer = self._error if fault is Fault.ERROR else self._ok
        sent = 0 if is_head else None
        if fault is Fault.TRUNCATE:
            connection = CLOSE
            sent = 0 if is_head else len(answer.body) // 2
        return build_reply(answer, b"Delay: %.9g\r\n" % delay_s, connection, sent, delay_s)

    def _make_ready(self, delay_s: float) -> Reply:
        reply = self.build(Plan(delay_s, None), is_head=False, connection=b"")
        if self._is_short:
            if len(self._ready) >= MOST_READY:
                self._ready.clear()
            self._ready[delay_s] = reply
        return reply


def build_reply(
    answer: Answer, headers: bytes, connection: bytes, sent: int | None = None, delay_s: float = 0.0
) -> Reply:
    """An answer with its headers; see `Answer.build` and `Replies.build`."""
    ending = Ending.CLOSE if connection == CLOSE else Ending.OPEN
    return Reply(delay_s, answer.build(headers + connection, sent), ending)

"""The responses of the delay server: the delay and the fault that a planner decides on, as bytes.

There is no `Date` and no `Server` header: every byte would also cost the measured client some time.
"""

import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from oku_server.behaviour.fault import Fault
from oku_server.behaviour.planner import DelayPlan, Overrides, Planner

CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"
"""The header that an HTTP/1.0 client wants to see; HTTP/1.1 keeps a connection open without it."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The response that a client with `Expect: 100-continue` waits for before it sends a body."""
COPY_LIMIT_BYTES = 65_536
"""Bodies up to this size are copied behind their head: one write is cheaper than a vector of two."""
MOST_READY = 256
READY_LIMIT_BYTES = 1024
"""How many responses are kept ready, one for each delay, and how long a body they may have."""


class Ending(Enum):
    """The fate of a connection after a response."""

    OPEN = auto()
    """It takes the next request."""
    CLOSE = auto()
    """It is closed in order."""
    RESET = auto()
    """It is reset, and nothing is written."""
    NEVER = auto()
    """There is no response, however long the client waits."""


class DelayedResponse(NamedTuple):
    """How many seconds to wait, which buffers to write then, in order, and the fate of the connection."""

    delay_s: float
    buffers: tuple[bytes, ...]
    ending: Ending


@dataclass(frozen=True)
class Content:
    """The content of a response: status (code and phrase), body, and the body's type if it is stated."""

    status: bytes
    body: bytes
    content_type: bytes = b""


_ERROR = Content(b"500 Internal Server Error", b"an error, as asked for by --error-rate\n")
_STALL = DelayedResponse(math.inf, (), Ending.NEVER)


class PlannedResponses:
    """The responses of one server process, with one planner.

    Args:
        planner: decides on the delay and the fault of each request.
        body: the body of a proper response.
        ready: the responses with this body that are kept ready, by their delay; empty unless given.
    """

    __slots__ = ("_always", "_ok", "_planner", "_ready")

    def __init__(
        self, planner: Planner, body: bytes, ready: dict[float, DelayedResponse] | None = None
    ) -> None:
        self._planner = planner
        self._ok = Content(b"200 OK", body)
        self._ready = {} if ready is None else ready
        always = planner.always
        self._always = None if always is None else self._build(always, is_head=False, connection=b"")

    def override(self, overrides: Overrides) -> "PlannedResponses":
        """The same responses, with the delays and faults of requests that override delay or seed."""
        return PlannedResponses(self._planner.override(overrides), self._ok.body, self._ready)

    def find_plain(self, name: bytes) -> DelayedResponse:
        """The response to a plain request (see `head_cache`) for `name`."""
        if self._always is not None:
            return self._always
        delay_s, fault = plan = self._planner.plan(name)
        if fault is not None:
            return self._build(plan, is_head=False, connection=b"")
        return self._ready.get(delay_s) or self._make_ready(plan)

    def build(self, name: bytes, *, is_head: bool, connection: bytes) -> DelayedResponse:
        """The response to any other request for `name`.

        Args:
            name: the name in the target of the request.
            is_head: whether the method of the request is HEAD.
            connection: the header about the connection, as in `build_response`.
        """
        return self._build(self._planner.plan(name), is_head=is_head, connection=connection)

    def __len__(self) -> int:
        """How many responses are kept ready."""
        return len(self._ready)

    def _make_ready(self, plan: DelayPlan) -> DelayedResponse:
        response = self._build(plan, is_head=False, connection=b"")
        if len(self._ok.body) <= READY_LIMIT_BYTES:
            if len(self._ready) >= MOST_READY:
                self._ready.clear()
            self._ready[plan.delay_s] = response
        return response

    def _build(self, plan: DelayPlan, *, is_head: bool, connection: bytes) -> DelayedResponse:
        delay_s, fault = plan
        if fault is Fault.STALL:
            return _STALL
        if fault is Fault.RESET:
            return DelayedResponse(delay_s, (), Ending.RESET)
        content = _ERROR if fault is Fault.ERROR else self._ok
        sent = 0 if is_head else None
        if fault is Fault.TRUNCATE:
            connection = CLOSE
            sent = 0 if is_head else len(content.body) // 2
        headers = b"Delay: %.9g\r\n" % delay_s
        return build_response(content, connection=connection, headers=headers, sent=sent, delay_s=delay_s)


def build_response(
    content: Content,
    *,
    connection: bytes,
    headers: bytes = b"",
    sent: int | None = None,
    delay_s: float = 0.0,
) -> DelayedResponse:
    """Build a response with its head.

    Args:
        content: status, body and type.
        connection: the header about the connection: `CLOSE`, `KEEP_ALIVE` or nothing.
        headers: more headers, each with its line ending.
        sent: how many bytes of the body follow a head that announces all of it; all of them unless given.
        delay_s: how long the response waits.
    """
    if content.content_type:
        headers = b"Content-Type: %b\r\n%b" % (content.content_type, headers)
    head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b%b\r\n" % (
        content.status, len(content.body), headers, connection,
    )  # fmt: skip
    body = content.body[:sent]
    buffers = (head + body,) if len(body) <= COPY_LIMIT_BYTES else (head, body)
    return DelayedResponse(delay_s, buffers, Ending.CLOSE if connection == CLOSE else Ending.OPEN)


def build_text(status: bytes, text: bytes) -> Content:
    """Content that is one line of text for people."""
    return Content(status, text, b"text/plain; charset=utf-8")


def build_refusal(status: bytes, reason: bytes = b"") -> Content:
    """Content for a request that cannot be read, or only at too high a cost; the reason is one line."""
    return build_text(status, (reason or status.lower()) + b"\n")

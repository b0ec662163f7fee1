"""The responses to requests for a name: the delay and the fault that a planner decides on, as bytes."""

import math

from oku_server.behaviour.fault import Fault
from oku_server.behaviour.overrides import Overrides
from oku_server.behaviour.plan import Plan, Planner
from oku_server.http.response import CLOSE, Content, Ending, Response, build_response

MOST_READY = 256
READY_LIMIT_BYTES = 1024
"""How many responses are kept ready, one for each delay, and how long a body they may have."""

_ERROR = Content(b"500 Internal Server Error", b"an error, as asked for by --error-rate\n")
_STALL = Response(math.inf, (), Ending.NEVER)


class PlannedResponses:
    """The responses of one server process, with one planner.

    Args:
        planner: decides on the delay and the fault of each request.
        body: the body of a proper response.
        ready: the responses with this body that are kept ready, by their delay; empty unless given.
    """

    __slots__ = ("_always", "_ok", "_planner", "_ready")

    def __init__(self, planner: Planner, body: bytes, ready: dict[float, Response] | None = None) -> None:
        self._planner = planner
        self._ok = Content(b"200 OK", body)
        self._ready = {} if ready is None else ready
        always = planner.always
        self._always = None if always is None else self._build(always, is_head=False, connection=b"")

    def override(self, overrides: Overrides) -> "PlannedResponses":
        """The same responses, with the delays and faults of requests that override delay or seed."""
        return PlannedResponses(self._planner.override(overrides), self._ok.body, self._ready)

    def find_plain(self, name: bytes) -> Response:
        """The response to a plain request (see `head_cache`) for `name`."""
        if self._always is not None:
            return self._always
        delay_s, fault = plan = self._planner.plan(name)
        if fault is not None:
            return self._build(plan, is_head=False, connection=b"")
        return self._ready.get(delay_s) or self._make_ready(plan)

    def build(self, name: bytes, *, is_head: bool, connection: bytes) -> Response:
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

    def _make_ready(self, plan: Plan) -> Response:
        response = self._build(plan, is_head=False, connection=b"")
        if len(self._ok.body) <= READY_LIMIT_BYTES:
            if len(self._ready) >= MOST_READY:
                self._ready.clear()
            self._ready[plan.delay_s] = response
        return response

    def _build(self, plan: Plan, *, is_head: bool, connection: bytes) -> Response:
        delay_s, fault = plan
        if fault is Fault.STALL:
            return _STALL
        if fault is Fault.RESET:
            return Response(delay_s, (), Ending.RESET)
        content = _ERROR if fault is Fault.ERROR else self._ok
        sent = 0 if is_head else None
        if fault is Fault.TRUNCATE:
            connection = CLOSE
            sent = 0 if is_head else len(content.body) // 2
        headers = b"Delay: %.9g\r\n" % delay_s
        return build_response(content, connection=connection, headers=headers, sent=sent, delay_s=delay_s)

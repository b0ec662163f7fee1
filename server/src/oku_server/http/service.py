"""What the connections of one server process share, and the response to any request.

A planner decides on delay and fault, `response_plan` turns them into bytes, and the timing wheel wakes the
connections that wait. Requests that override delay or seed have a planner of their own; the most recent of
these planners are kept.
"""

from functools import lru_cache

from oku_server.behaviour.planner import MOST_OVERRIDES, NO_OVERRIDES, Overrides, Planner
from oku_server.behaviour.timing_wheel import TimingWheel
from oku_server.counts.count_table import CountTable
from oku_server.http.admin import Describe, answer_admin
from oku_server.http.head_cache import HeadCache
from oku_server.http.planned_response import DelayedResponse, PlannedResponses, build_refusal, build_response
from oku_server.http.request_reader import ADMIN_PREFIX, Request
from oku_server.http.request_timeouts import RequestTimeouts


class DelayService:
    """The delay server behind the connections of one process.

    Attributes:
        head_cache: the request heads that need no parser.
    """

    def __init__(
        self,
        planner: Planner,
        body: bytes,
        counts: CountTable,
        wheel: TimingWheel,
        request_timeouts: RequestTimeouts,
        describe: Describe,
    ) -> None:
        self.counts = counts
        self.head_cache = HeadCache()
        self.wheel = wheel
        self.request_timeouts = request_timeouts
        self._responses = PlannedResponses(planner, body)
        self._find_overridden = lru_cache(maxsize=MOST_OVERRIDES)(self._responses.override)
        self._describe = describe

    def find_responses(self, overrides: Overrides) -> PlannedResponses:
        """The responses to requests with these overrides."""
        return self._responses if overrides == NO_OVERRIDES else self._find_overridden(overrides)

    def build_response(self, request: Request) -> DelayedResponse:
        """The response to any request."""
        connection = request.connection
        if request.refusal:
            return build_response(build_refusal(request.refusal, request.reason), connection=connection)
        if request.name.startswith(ADMIN_PREFIX):
            content = answer_admin(request.name, request.target, self._describe)
            return build_response(content, connection=connection, sent=0 if request.is_head else None)
        responses = self.find_responses(request.overrides)
        return responses.build(request.name, is_head=request.is_head, connection=connection)

"""What the connections of one server process share, and what each request gets.

A planner decides on delay and fault, `reply` knows the bytes, the wheel wakes whoever waits. Requests that
wish another delay or seed get a planner of their own kind; the last of these are kept.
"""

from functools import lru_cache

from oku_server.behaviour.overrides import MOST, NO_WISH, Overrides
from oku_server.behaviour.plan import Planner
from oku_server.behaviour.timing_wheel import Wheel
from oku_server.counts.count_table import CountTable
from oku_server.http.admin import Describe, answer_question
from oku_server.http.answer import build_refusal
from oku_server.http.head_cache import HeadCache
from oku_server.http.reply import Replies, Reply, build_reply
from oku_server.http.request_reader import OWN_PREFIX, Request
from oku_server.http.request_timeouts import PendingRequests
from oku_server.http.responder import Responder


class Service:
    """See the module.

    Args:
        planner: decides on delay and fault.
        body: the body of a proper answer.
        counts: the table of this process.
        wheel: wakes the connections whose requests have waited long enough.
        unfinished: refuses requests that take too long to arrive.
        describe: what the server says of itself and a run.

    Attributes:
        known_heads: the heads that need no parser.
    """

    def __init__(
        self,
        planner: Planner,
        body: bytes,
        counts: CountTable,
        wheel: Wheel,
        unfinished: PendingRequests,
        describe: Describe,
    ) -> None:
        self.counts = counts
        self.known_heads = HeadCache()
        self.wheel = wheel
        self.unfinished = unfinished
        self._planner = planner
        self._replies = Replies(body)
        self._describe = describe
        self._own = Responder(planner, self._replies)
        self._find_wished = lru_cache(maxsize=MOST)(self._build_wished)

    def find_responder(self, wish: Overrides) -> Responder:
        """Who replies to requests with this wish."""
        return self._own if wish == NO_WISH else self._find_wished(wish)

    def build_reply(self, request: Request) -> Reply:
        """What any request gets."""
        connection = request.connection
        if request.refusal:
            return build_reply(build_refusal(request.refusal, request.reason), b"", connection)
        if request.name.startswith(OWN_PREFIX):
            answer = answer_question(request.name, request.target, self._describe)
            return build_reply(answer, b"", connection, 0 if request.is_head else None)
        responder = self.find_responder(request.wish)
        return responder.build(request.name, is_head=request.is_head, connection=connection)

    def _build_wished(self, wish: Overrides) -> Responder:
        return Responder(self._planner.build_wished(wish), self._replies)

"""What the connections of one server process share, and what each request gets.

The planner decides on delay and fault, `reply` knows the bytes, the wheel wakes whoever waits.
"""

from collections.abc import Callable

from oku_server.answer import build_refusal
from oku_server.count_table import CountTable
from oku_server.known_heads import KnownHeads
from oku_server.plan import Plan, Planner
from oku_server.question import Description, answer_question
from oku_server.reply import Replies, Reply, build_reply
from oku_server.request_reader import OWN_PREFIX, Request
from oku_server.wheel import Wheel


class Service:
    """See the module.

    Args:
        planner: decides on delay and fault.
        body: the body of a proper answer.
        counts: the table of this process.
        wheel: wakes the connections whose requests have waited long enough.
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
        describe: Callable[[str], Description],
    ) -> None:
        self.counts = counts
        self.known_heads = KnownHeads()
        self.wheel = wheel
        self._planner = planner
        self._replies = Replies(body)
        self._describe = describe
        self._always = None if planner.always is None else self._build_plain(planner.always)

    def find_reply(self, name: bytes) -> Reply:
        """What a plain request (see `known_heads`) for `name` gets."""
        if self._always is not None:
            return self._always
        plan = self._planner.plan(name)
        return self._build_plain(plan) if plan.fault is not None else self._replies.find_ok(plan.delay_s)

    def build_reply(self, request: Request) -> Reply:
        """What any request gets."""
        _, name, is_head, connection, refusal = request
        if refusal:
            return build_reply(build_refusal(refusal), b"", connection)
        if name.startswith(OWN_PREFIX):
            answer = answer_question(name, request.target, self._describe)
            return build_reply(answer, b"", connection, 0 if is_head else None)
        return self._replies.build(self._planner.plan(name), is_head=is_head, connection=connection)

    def _build_plain(self, plan: Plan) -> Reply:
        return self._replies.build(plan, is_head=False, connection=b"")

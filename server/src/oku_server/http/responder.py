"""Replies to the requests that have one delay and one seed: what a planner says, in the bytes of `reply`."""

from oku_server.behaviour.plan import Plan, Planner
from oku_server.http.reply import Replies, Reply


class Responder:
    """See the module.

    Args:
        planner: decides on delay and fault.
        replies: knows the bytes.
    """

    __slots__ = ("_always", "_planner", "_replies")

    def __init__(self, planner: Planner, replies: Replies) -> None:
        self._planner = planner
        self._replies = replies
        self._always = None if planner.always is None else self._build_plain(planner.always)

    def find_plain(self, name: bytes) -> Reply:
        """What a plain request (see `known_heads`) for `name` gets."""
        if self._always is not None:
            return self._always
        plan = self._planner.plan(name)
        return self._build_plain(plan) if plan.fault is not None else self._replies.find_ok(plan.delay_s)

    def build(self, name: bytes, *, is_head: bool, connection: bytes) -> Reply:
        """What any other request for `name` gets; see `Replies.build`."""
        return self._replies.build(self._planner.plan(name), is_head=is_head, connection=connection)

    def _build_plain(self, plan: Plan) -> Reply:
        return self._replies.build(plan, is_head=False, connection=b"")

"""One request on its way: a stream of an HTTP/2 connection, or what waits to become one."""

from typing import TYPE_CHECKING

from oku_workers.executions.tally import OK, Tally

if TYPE_CHECKING:
    from oku_workers.engines.nghttp2.route import Route

Headers = tuple[tuple[bytes, bytes], ...]
"""Names in lower case with their values; first those that begin with a colon."""


class Stream:
    """One request, from when it was taken to its end; it may be used again for the one that follows.

    Args:
        route: what kind of request it is.
        tally: counts it.
        coordinate: its place in the ledger.
        index: its index.
        since_ns: when it was taken.
        lateness_us: how long after its due time that was.

    Attributes:
        number: that of its stream on its connection; 0 as long as it has none.
        headers: of its answer, the status first, and its trailers.
        received: the bytes of body that have come.
        body: what has come of them, if checks want it.
        first_ns: when its answer began.
        is_odd: whether it has no answer, or was refused before.
        is_plain: whether the request has no body, and nothing of its answer's body is kept.
        is_reset: whether the server has reset it.
        outcome: what it counts as without a complete answer; `OK` as long as that may come.
        reason: why it has none.
        is_refused: whether it has ended, and the server says that it has not looked at it.
        refusals: how often that was so.
        refused_by: the connection on which it was so last.
    """

    __slots__ = (
        "body",
        "coordinate",
        "first_ns",
        "headers",
        "index",
        "is_odd",
        "is_plain",
        "is_refused",
        "is_reset",
        "lateness_us",
        "number",
        "outcome",
        "reason",
        "received",
        "refusals",
        "refused_by",
        "route",
        "since_ns",
        "tally",
    )

    def __init__(
        self, route: "Route", tally: Tally, coordinate: int, index: int, since_ns: int, lateness_us: int
    ) -> None:
        self.route = route
        self.is_plain = not route.kept_bytes and route.build_body is None
        self.tally = tally
        self.coordinate = coordinate
        self.index = index
        self.since_ns = since_ns
        self.lateness_us = lateness_us
        self.number = self.received = self.first_ns = 0
        self.headers: Headers = ()
        self.body = bytearray()
        self.is_reset = self.is_refused = self.is_odd = False
        self.outcome, self.reason = OK, ""
        self.refusals = 0
        self.refused_by: object = None

    def begin_again(self) -> None:
        """Forget what came of the last try."""
        self.number = self.received = self.first_ns = 0
        self.body.clear()
        self.is_reset = self.is_refused = False
        self.is_odd = True
        self.outcome, self.reason = OK, ""

"""Requests on their way: what kind they are, where they go, and each one from when it is taken to its end.

A `Route` is built from a request template. A `Stream` is one request of it. An `Origin` is its destination,
with the connections that have room and the requests that wait for one.
"""

import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Callable

from yarl import URL

from oku_core.accounting.outcome import OK
from oku_core.http_client.connector import Connector, OriginConnection, Way
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import Rows
from oku_workers.engines.http.answer_checks import build_judge
from oku_workers.engines.http.response_counting import Parsed
from oku_workers.engines.http.route_table import Routes
from oku_workers.engines.nghttp2.request import NOTHING, BuildRequest, Headers, build_request
from oku_workers.executions.tally import Tally

_log = logging.getLogger(__name__)


class RoomyConnection(OriginConnection):
    """A connection, as its requests see it.

    Attributes:
        origin: where it goes.
        since_ns: when it was begun; later, when it became idle.
    """

    __slots__ = ()

    origin: "Origin"
    since_ns: int

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """Whether another request can be sent on it now."""

    @abstractmethod
    def open(self, stream: "Stream", headers: Headers) -> None:
        """Have a request sent with the next `flush`; there must be room for it."""

    @abstractmethod
    def flush(self) -> None:
        """Send what there is to be sent."""


class Origin(Connector):
    """One scheme, host and port.

    Args:
        url: scheme, host and port.
        way: how connections are made.

    Attributes:
        is_slow: whether connections take long to be made.
        connections: those that take streams, or will once they are made.
        connecting: the ones among them that are not made yet.
        roomy: the ones among them that can take another stream now, the latest user at the end.
        waiting: requests that were taken and have no stream: their connection is not made yet, or the server
            has refused them.
        most_streams: the latest limit that a server has announced for a connection; 0 before that.
    """

    def __init__(self, url: URL, way: Way) -> None:
        super().__init__(url, way)
        self._name = str(url)
        self.connections: set[RoomyConnection] = set()
        self.connecting: set[RoomyConnection] = set()
        self.roomy: dict[RoomyConnection, None] = {}
        self.waiting: deque[Stream] = deque()
        self.most_streams = 0
        self.is_slow = False
        self._fewest_streams: int | None = None
        """The lowest limit that the log has."""

    def record_limit(self, most_streams: int, wanted: int) -> None:
        """Record the stream limit of a connection; the log has it if it is a new minimum.

        Servers behind one name may differ, and each may change its mind at any time.

        Args:
            most_streams: the limit.
            wanted: how many streams the spec asks for.
        """
        self.most_streams = most_streams
        if most_streams < (wanted if self._fewest_streams is None else self._fewest_streams):
            self._fewest_streams = most_streams
            _log.warning(
                "%s allows %d streams at a time on a connection, not %d", self._name, most_streams, wanted
            )

    def can_wait(self, streams: int) -> bool:
        """Whether another request may wait for the connections that are being made.

        Args:
            streams: the limit of each until the server announces one.
        """
        return self.is_slow and len(self.waiting) < len(self.connecting) * (self.most_streams or streams)

    def find_roomy(self, avoided: object = None) -> RoomyConnection | None:
        """A connection that can take another stream; another one than `avoided` if there is one."""
        found = None
        for connection in self.roomy:
            if not connection.has_room:  # its server has just hung up, which the event loop reports soon
                continue
            found = connection
            if connection is not avoided:
                break
        return found


class Route:
    """One kind of request.

    Args:
        template: what the requests are.
        build: makes the requests.
        origin: where they go; None if the URL is invalid.
        timeout_s: the longest time of a request.

    Attributes:
        build_headers: makes the headers of request `i`.
        build_body: makes the body; None without one.
        origin: as given.
        kept_bytes: how much of the body of an answer is kept to judge it.
        ok_statuses: the statuses as they come, with their numbers, if nothing else makes an answer ok; those
            that have come already.
        ok_ns: how long an answer may take to count as ok.
    """

    __slots__ = (
        "_judge", "build_body",
        "build_headers", "has_request_body", "kept_bytes", "ok_ns", "ok_statuses", "origin",
    )  # fmt: skip

    def __init__(
        self, template: RequestTemplate, build: BuildRequest, origin: Origin | None, timeout_s: float
    ) -> None:
        self.build_headers, self.build_body = build
        self.origin = origin
        self._judge = build_judge(template.expect, timeout_s)
        self.kept_bytes = self._judge.kept_bytes
        self.ok_statuses: dict[bytes, int] = {}
        self.ok_ns = self._judge.ok_ns

    def judge(self, stream: "Stream") -> Parsed:
        """The outcome of a complete answer, unless it came too late."""
        written = stream.headers[0][1]
        if (known := self.ok_statuses.get(written)) is not None:
            return OK, known, stream.received, ""
        status, received, head = int(written), stream.received, b""
        if self._judge.looks_inside:
            head = b"".join([b"%b: %b\r\n" % field for field in stream.headers[1:]])
            head = b"HTTP/2 %b\r\n%b\r\n" % (written, head)
        outcome, reason = self._judge.judge(status, received, head, stream.body)
        if outcome == OK and not self._judge.looks_inside:
            self.ok_statuses[written] = status
        return outcome, status, received, reason


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
        number: the number of its stream on the connection; 0 before it has one.
        headers: of its answer, the status first, and its trailers.
        received: the bytes of body that have come.
        body: the beginning of the body, if checks need it.
        first_ns: when its answer began.
        is_odd: whether it has no answer, or was refused before.
        is_plain: whether the request has no body, and nothing of its answer's body is kept.
        is_reset: whether the server has reset it.
        outcome: its outcome without a complete answer; `OK` while that may come.
        reason: of that outcome.
        is_refused: whether the server has refused it unprocessed.
        refusals: how often it was refused.
        refused_by: the connection of the latest refusal.
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
        self, route: Route, tally: Tally, coordinate: int, index: int, since_ns: int, lateness_us: int
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

    def prepare_retry(self) -> None:
        """Reset the results of the last attempt."""
        self.number = self.received = self.first_ns = 0
        self.body.clear()
        self.is_reset = self.is_refused = False
        self.is_odd = True
        self.outcome, self.reason = OK, ""


def build_routes(spec: Spec, way: Way, rows: Rows | None = None) -> Routes[Route, Origin]:
    """The routes of a spec.

    Args:
        spec: what to send.
        way: how connections are made.
        rows: the rows of the run, if it has data that its requests use.
    """

    def build(template: RequestTemplate, url: URL) -> Callable[[Origin], Route]:
        build_one = build_request(template, url, rows)
        return lambda origin: Route(template, build_one, origin, spec.timeout_s)

    def build_unsendable(template: RequestTemplate) -> Route:
        return Route(template, NOTHING, None, spec.timeout_s)

    return Routes(spec, build, build_unsendable, lambda url: Origin(url, way))

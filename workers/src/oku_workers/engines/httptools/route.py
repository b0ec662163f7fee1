"""What the httptools engine makes of a request template: what to send where, and how to judge the answers."""

from collections.abc import Callable
from functools import partial
from typing import Generic

from yarl import URL

from oku_core.accounting.outcome import OK
from oku_core.http_client.connector import Way
from oku_core.http_client.idle_pool import AnyConnection, PooledConnector
from oku_core.http_client.response_reader import ResponseReader
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import asks_to_close
from oku_core.spec.values.template import Rows
from oku_workers.engines.http.answer_checks import build_judge
from oku_workers.engines.http.response_counting import Parsed
from oku_workers.engines.http.route_table import Routes
from oku_workers.engines.httptools.exchange import ResponseCache, RouteBase
from oku_workers.engines.httptools.request import SharedBody, share_body
from oku_workers.engines.httptools.response_pattern import MOST_PATTERNS, ResponsePattern, learn_pattern

_MOST_DIFFERENT = 256
"""After so many answers in a row that differ, whole ones are not looked up any more."""


class Route(RouteBase, Generic[AnyConnection]):
    """One kind of request.

    Args:
        template: what the requests are.
        shared: makes the bytes of request `i`.
        origin: their destination; None for a URL without a host.
        timeout_s: the longest time of a request.

    Attributes (with those of its base):
        build: makes the bytes of request `i`, or what comes before `body`.
        body: the shared body that follows the bytes of each request; usually empty.
        origin: as given.
        known: the answers that need no parsing.
        keeps_connections: whether another request may follow on a connection; the spec may say no.
        has_bodies: whether answers have bodies; those to HEAD have none.
    """

    __slots__ = (
        "_different",
        "_judge",
        "_patterns",
        "_recognised",
        "body",
        "build",
        "has_bodies",
        "keeps_connections",
        "known",
        "origin",
    )

    def __init__(
        self,
        template: RequestTemplate,
        shared: SharedBody,
        origin: PooledConnector[AnyConnection] | None,
        timeout_s: float,
    ) -> None:
        self.build, self.body = shared
        self.origin = origin
        self.known = ResponseCache()
        self.find_known = self.known.find
        self.shapes = ()
        self._patterns: list[ResponsePattern] = []
        self._recognised = b""
        """The latest answer that a pattern has recognised."""
        self._different = 0
        """How many it has recognised that were not the same as the one before."""
        self.keeps_connections = not asks_to_close(template.headers)
        self.has_bodies = template.method != "HEAD"
        self._judge = build_judge(template.expect, timeout_s)
        self.looks_inside = self._judge.looks_inside
        self.ok_ns = self._judge.ok_ns

    def prepare(self, reader: ResponseReader) -> None:
        """Have a reader keep of the next answer what it is judged by."""
        reader.has_bodies = self.has_bodies
        reader.kept_bytes = self._judge.kept_bytes
        reader.reset()

    def recognise(self, answer: bytes) -> Parsed | None:
        """What an answer counts as that is like one before, and ok unless it is late; None if it is not."""
        for pattern in self._patterns:
            if (size := pattern.measure(answer)) < 0:
                continue
            if self.looks_inside and not self._passes(pattern, answer, size):
                return None
            parsed = OK, pattern.status, size, ""
            # A target that says the same to all, but for the time of day, is known best by all bytes.
            if answer == self._recognised:
                self.known.add(answer, parsed)
                self.find_known = self.known.find
                self._different = 0
                return parsed
            self._recognised = answer
            if self.find_known is not None:
                self._different += 1
                if self._different == _MOST_DIFFERENT:
                    self.find_known = None
            return parsed
        return None

    def _passes(self, pattern: ResponsePattern, answer: bytes, size: int) -> bool:
        """Whether an answer passes checks that look into it."""
        head, body = pattern.take_apart(answer)
        return self._judge.judge(pattern.status, size, head, body[: self._judge.kept_bytes])[0] == OK

    def learn(self, answer: bytes, parsed: Parsed) -> None:
        """Take note of a whole answer that was ok, and left its connection open."""
        self.known.add(answer, parsed)
        if self.has_bodies and len(self._patterns) < MOST_PATTERNS and (pattern := learn_pattern(answer)):
            self._patterns.append(pattern)
            self.shapes += (pattern.shape,)

    def judge(self, reader: ResponseReader) -> Parsed:
        """What a complete answer counts as, unless it came too late."""
        status, received = reader.status, reader.received
        outcome, reason = self._judge.judge(status, received, reader.head, reader.body)
        return outcome, status, received, reason


def build_routes(
    spec: Spec, way: Way, rows: Rows | None = None
) -> Routes[Route[AnyConnection], PooledConnector[AnyConnection]]:
    """The routes of a spec.

    Args:
        spec: what to send.
        way: how connections are made.
        rows: the rows of the run, if it has data that its requests use.
    """

    def build(
        template: RequestTemplate, url: URL
    ) -> Callable[[PooledConnector[AnyConnection]], Route[AnyConnection]]:
        shared = share_body(template, url, rows)
        return lambda origin: Route(template, shared, origin, spec.timeout_s)

    def build_unsendable(template: RequestTemplate) -> Route[AnyConnection]:
        return Route(template, SharedBody(lambda _: b""), None, spec.timeout_s)

    return Routes(spec, build, build_unsendable, partial(PooledConnector, way=way))

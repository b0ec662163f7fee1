"""What the nghttp2 engine makes of a request template: what to send where, and how to judge the answers."""

import ssl
from typing import TYPE_CHECKING

from yarl import URL

from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import Rows
from oku_workers.engines.http.answer_checks import build_judge
from oku_workers.engines.http.response_counting import Parsed
from oku_workers.engines.http.route_table import Routes
from oku_workers.engines.nghttp2.origin import Origin
from oku_workers.engines.nghttp2.request import NOTHING, BuildRequest, build_request
from oku_workers.engines.nghttp2.stream import Stream
from oku_workers.executions.tally import OK

if TYPE_CHECKING:
    from collections.abc import Callable


class Route:
    """One kind of request.

    Args:
        template: what the requests are.
        build: makes the requests.
        origin: where they go; None where nobody can be asked.
        timeout_s: the longest time of a request.

    Attributes:
        build_headers: makes the headers of request `i`.
        build_body: makes what follows them; None if nothing does.
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

    def judge(self, stream: Stream) -> Parsed:
        """What a complete answer counts as, unless it came too late."""
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


def build_routes(
    spec: Spec, local_address: str | None, tls: ssl.SSLContext | None, rows: Rows | None = None
) -> Routes[Route, Origin]:
    """The routes of a spec.

    Args:
        spec: what to send.
        local_address: what to send from; the system chooses unless given.
        tls: how to speak TLS.
        rows: the rows of the run, if it has data that its requests use.
    """

    def build(template: RequestTemplate, url: URL) -> "Callable[[Origin], Route]":
        build_one = build_request(template, url, rows)
        return lambda origin: Route(template, build_one, origin, spec.timeout_s)

    def build_unsendable(template: RequestTemplate) -> Route:
        return Route(template, NOTHING, None, spec.timeout_s)

    def connect(url: URL, tls: ssl.SSLContext | None) -> Origin:
        return Origin(url, tls, local_address)

    return Routes(spec, tls, build, build_unsendable, connect)

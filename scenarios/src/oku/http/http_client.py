"""Sends requests for all users of a host: keeps connections, and sees to time limits and redirections."""

import asyncio
from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from time import monotonic_ns
from typing import NamedTuple

from yarl import URL

from oku.http.outbound_connection import BuildHeaders, ClientOrigin, OutboundConnection
from oku.http.request_plan import RequestPlan, build_plan_url
from oku_core.data.escape import IN_HEADER
from oku_core.http_client.connector import OriginTable, Way
from oku_core.http_client.request_head import build_origin, list_own_headers, write_headers
from oku_core.http_client.tls import SpecTls
from oku_core.spec.spec import Spec
from oku_core.spec.values.check import list_codes
from oku_core.spec.values.request_content import DEFAULT_HEADERS, asks_to_close
from oku_core.spec.values.template import Rows, Template

_MOST_PLANS = 2_000
"""How many URLs are remembered; scenarios that write the index into them by themselves have ever new ones."""
_SWEEP_S, _SHORTEST_SWEEP_S = 0.25, 0.005
MOST_KEPT_BYTES = 1 << 28
"""The longest body that a scenario can look at."""


_OLD_DEFAULT = ("200",)
"""`expect_status` in specs that an older Oku has stored; its scenarios expected 200 to 399 nevertheless."""


class Answer(NamedTuple):
    """An answer as it came.

    Attributes:
        status: its status.
        head: status line and headers.
        content: its body as it was sent, as far as it is kept.
        received: the bytes of its body.
    """

    status: int
    head: bytes
    content: bytes | bytearray
    received: int


class HttpClient:
    """Connections of one host; belongs to the running event loop.

    Args:
        spec: says where relative URLs go, and what all requests have in common; an attribute, too.
        tls: makes the settings of TLS when they are first needed.
        rows: the rows of the run; None without data.
        local_address: what to connect from; the system chooses unless given.

    Attributes:
        expected: the statuses that are expected of requests without `expect`.
    """

    def __init__(
        self,
        spec: Spec,
        tls: SpecTls,
        rows: Rows | None = None,
        local_address: str | None = None,
    ) -> None:
        self.spec = spec
        self.expected = _find_expected(spec)
        self._columns = frozenset(spec.columns)
        self._rows = rows
        self._tls = tls
        self._way = Way(None, None if spec.proxy is None else URL(spec.proxy), local_address)
        self._keeps_connections = not asks_to_close(spec.headers)
        self._headers = [
            (header.name, Template.parse(header.value, self._columns, IN_HEADER)) for header in spec.headers
        ]
        names = [*DEFAULT_HEADERS, "Host", "Proxy-Authorization", *(name for name, _ in self._headers)]
        self._common_names = frozenset(map(str.lower, names))
        self._plans: dict[tuple[str, str], RequestPlan] = {}
        self._origins = OriginTable(self._build_origin)
        self._busy: set[OutboundConnection] = set()
        self._sweep_s = _SWEEP_S
        self.allow_timeout(spec.timeout_s)
        self._loop = asyncio.get_running_loop()
        self._sweeper: asyncio.TimerHandle | None = self._loop.call_later(self._sweep_s, self._sweep)

    def find_plan(self, method: str, url: str) -> RequestPlan:
        """A method and a URL as a scenario writes them, taken apart.

        Raises:
            ValueError: nothing can be asked there.
        """
        key = method, url
        plan = self._plans.get(key)
        if plan is None:
            whole = build_plan_url(self.spec.base_url, url)
            origin = self._origins.find(build_origin(whole))
            plan = RequestPlan(method.upper(), whole, self._columns, origin)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _build_origin(self, url: URL) -> ClientOrigin:
        """Where the connections to an origin go; plans may belong to the one that makes room for it."""
        self._plans.clear()
        way = self._way if url.scheme == "http" else replace(self._way, tls=self._tls.build())
        return ClientOrigin(url, way)

    def build_head(
        self,
        plan: RequestPlan,
        line: bytes,
        own: Sequence[tuple[str, str]],
        index: int | None,
        *,
        is_foreign: bool = False,
    ) -> bytes:
        """Request line and headers of a request.

        Args:
            plan: of the request.
            line: its request line.
            own: its own headers, which replace the common ones of the same name.
            index: of its iteration; None outside of iterations.
            is_foreign: whether redirections have led to another origin: it has no headers of the run then.
        """
        build_common, replaced = plan.origin.build_common, [name.lower() for name, _ in own]
        if is_foreign or plan.has_credentials or not self._common_names.isdisjoint(replaced):
            build_common = self._bind_common(plan, replaced, is_foreign=is_foreign)
        elif build_common is None:
            build_common = plan.origin.build_common = self._bind_common(plan, replaced)
        written = "".join([f"{name}: {value}\r\n" for name, value in own])
        return b"%b%b%b\r\n" % (line, build_common(index or 0), written.encode("utf-8", "surrogateescape"))

    def _bind_common(
        self, plan: RequestPlan, replaced: Collection[str], *, is_foreign: bool = False
    ) -> BuildHeaders:
        """What makes the headers of all requests, but those that one replaces."""
        place = plan.place.with_user(None) if is_foreign else plan.place
        headers = [] if is_foreign else self._headers
        given = {*replaced, *(name.lower() for name, _ in headers)}
        kept = [header for header in headers if header[0].lower() not in replaced]
        own = list_own_headers(place, given, proxy=plan.origin.proxy)
        return write_headers([*own, *kept]).bind_bytes(self._rows)

    def find_header(self, name: str, index: int | None) -> str:
        """The value of a header of all requests, whose name is in lower case; empty if there is none."""
        found = (value for each, value in self._headers if each.lower() == name)
        return next((str(value.bind(self._rows)(index or 0)) for value in found), "")

    def allow_timeout(self, timeout_s: float) -> None:
        """Check deadlines often enough for requests with this time limit."""
        self._sweep_s = min(self._sweep_s, max(timeout_s / 50, _SHORTEST_SWEEP_S))

    async def exchange(
        self,
        origin: ClientOrigin,
        request: bytes,
        deadline_ns: int,
        *,
        has_body: bool,
        kept_bytes: int,
        is_last: bool = False,
    ) -> Answer:
        """Send a request, and wait for all of its answer.

        Args:
            origin: where it goes.
            request: all of it.
            deadline_ns: until when it may take, by the monotonic clock.
            has_body: whether the answer has a body.
            kept_bytes: how much of that is kept.
            is_last: whether it asks to close its connection: not every server says that it does.

        Raises:
            TransportError: there is no complete answer.
        """
        connection = origin.idle.pop(monotonic_ns())
        if connection is None:
            connection = await origin.open(deadline_ns)
        waiter = self._loop.create_future()
        connection.deadline_ns = deadline_ns
        self._busy.add(connection)
        try:
            connection.ask(request, waiter, has_body=has_body, kept_bytes=kept_bytes)
            await waiter
        except BaseException:
            connection.close()
            raise
        finally:
            self._busy.discard(connection)
        reader = connection.reader
        answer = Answer(reader.status, reader.head, reader.body, reader.received)
        if reader.is_kept and not is_last and self._keeps_connections and connection.is_sent:
            origin.idle.rest(connection, monotonic_ns())
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Close every connection."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._busy):
            connection.expire()
        self._origins.close()

    def _sweep(self) -> None:
        """Expire requests that take too long: one timer for all requests costs less than one for each."""
        now_ns = monotonic_ns()
        for connection in [each for each in self._busy if each.deadline_ns < now_ns]:
            connection.expire()
        for origin in self._origins:
            origin.idle.close_expired(now_ns)
        self._sweeper = self._loop.call_later(self._sweep_s, self._sweep)


def _find_expected(spec: Spec) -> Container[int]:
    """Those of a spec; a run of user code cannot set them, so 200 alone is the default of an older Oku."""
    return range(200, 400) if spec.expect_status == _OLD_DEFAULT else list_codes(spec.expect_status)

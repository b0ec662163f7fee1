"""The engine for HTTP/2: protocols of uvloop over libnghttp2, several requests at a time on each connection.

As in the httptools engine there is no task, no future and no timer for a request. A request is taken from the
feed when a stream for it can be opened at once, or when a connection is being made for it: nothing waits
unseen. A request that the server refuses unprocessed is retried (RFC 9113, section 8.7), and counts as one
request. See docs/decisions/0057-the-engine-of-http2.md.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from time import monotonic_ns

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, TIMEOUT
from oku_core.data.data_format import DataError
from oku_core.http_client.connector import Way
from oku_core.http_client.error_reason import NO_ROW, NO_URL
from oku_core.http_client.idle_pool import KEEPALIVE_S
from oku_core.process.supervision import Health, Supervisor
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import EngineContext, count_connections
from oku_workers.engines.http.connection_set import AHEAD_S, CONNECTING_AT_ONCE, ConnectionSet
from oku_workers.engines.http.http_engine import HttpEngine
from oku_workers.engines.nghttp2.connection import Connection
from oku_workers.engines.nghttp2.request import BuildHeaders, Headers
from oku_workers.engines.nghttp2.route import Origin, RoomyConnection, Route, Stream, build_routes
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol

SLOW_NS = 50_000_000
"""When a connection takes longer to make, as many requests wait for it as it could have streams: a host that
does not answer must not keep requests from others."""
MOST_REFUSALS = 5
"""How often a request is tried that the server refuses unprocessed, or whose connection ends before it can be
sent."""
MOST_FAILURES_AT_ONCE = 100
"""Yield to the event loop after this many requests that fail at once."""


class Nghttp2Engine(HttpEngine):
    """An `EngineProtocol`, made by `build_engine`; belongs to the thread of the event loop."""

    def __init__(
        self, spec: Spec, feed: FeedProtocol, supervisor: Supervisor, context: EngineContext
    ) -> None:
        super().__init__(spec, feed, supervisor)
        self.free = self.window
        way = Way(context.tls, local_address=context.local_address)
        routes = build_routes(spec, way, context.rows)
        self.turns, self._period = routes.turns, len(routes.turns)
        self._origins = routes.origins
        self._streams, self._connections_each = spec.streams, spec.connections
        self.build: BuildHeaders | None = None
        if len(routes.all) == 1 and routes.all[0].build_body is None and not feed.is_paced:
            self.build = routes.all[0].build_headers if context.rows is None else self._try_only
        self._connections = ConnectionSet[Connection](self)
        self._is_filling = self._will_fill = self._is_closing = False

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return self.window - self.free

    def start(self) -> None:
        """Begin to take from the feed."""
        super().start()
        self._chores.append(self._supervisor.start("feed", self._follow_feed))

    def _iter_in_flight(self) -> Iterator[tuple[Tally, int]]:
        return ((stream.tally, stream.coordinate) for stream in self._list_streams())

    def set_window(self, window: int) -> None:
        """Set how many requests may be in flight; surplus requests may end."""
        self.free += window - self.window
        self.window = window
        self._fill()

    def share_connections(self, connections: int) -> None:
        """Have at most this many connections to each host; surplus ones end with their requests."""
        if connections == self._connections_each:
            return
        self._connections_each = connections
        for origin in self._origins:
            mine = [each for each in self._connections if each in origin.connections]
            mine.sort(key=lambda connection: not connection.is_idle)  # those end at once
            for connection in mine[: max(0, len(mine) - connections)]:
                if connection.is_idle:
                    self._drop(connection)
                else:
                    connection.retire()

    @property
    def keeps_window(self) -> bool:
        """Whether no more than `window` are in flight, on no more connections than there may be."""
        most = self._connections_each
        counts = Counter(connection.origin for connection in self._connections) if most is not None else {}
        return super().keeps_window and all(most is None or count <= most for count in counts.values())

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of a lease that are in flight and give their coordinates back."""
        for origin in self._origins:
            for stream in [each for each in origin.waiting if each.tally.execution is execution]:
                origin.waiting.remove(stream)
                self._give_back(stream, is_untouched=True)
        for connection in self._connections:
            dropped = [stream for stream in connection.streams if stream.tally.execution is execution]
            for stream in dropped:
                connection.reset(stream)
                self._give_back(stream)
            if dropped:
                self.update_room(connection)
                connection.flush()
        self._fill()

    async def close(self) -> None:
        """Stop, give back the requests in flight, and close every connection."""
        self._is_closing = True
        self._cancel_chores()
        for origin in self._origins:
            origin.close()
            while origin.waiting:
                self._give_back(origin.waiting.popleft(), is_untouched=True)
        for connection in self._connections:
            streams = list(connection.streams)
            self._drop(connection)
            for stream in streams:
                self._give_back(stream)
        await self._connections.wait_gone(self._chores)

    # The connections call these.

    def on_ready(self, connection: Connection) -> None:
        """The server has sent its settings: requests can be sent."""
        connection.origin.connecting.discard(connection)
        self.refill(connection)

    def update_room(self, connection: Connection) -> None:
        """A connection may take another number of streams than before."""
        origin = connection.origin
        if connection.is_retired:
            origin.connections.discard(connection)
            origin.connecting.discard(connection)
        if connection.is_idle:
            connection.since_ns = monotonic_ns()
        if not connection.has_room:
            origin.roomy.pop(connection, None)
        elif connection not in origin.roomy:
            origin.roomy[connection] = None

    def go_on(self, connection: Connection) -> None:
        """A request has been answered: another one takes its place, if there is one."""
        execution = self.feed.current
        if execution is not None and self.free >= 0 and connection.has_room and not connection.origin.waiting:
            index = execution.next_index
            route = self.turns[index % self._period if self._period > 1 else 0]
            headers = self._try_build(route, index) if route.origin is connection.origin else ()
            if headers:
                connection.open(self._take(route), headers)
                return
        self.free += 1
        self.update_room(connection)
        if execution is not None or connection.origin.waiting:
            self._fill()

    def refill(self, connection: Connection) -> None:
        """Requests have ended without an answer: others take their places."""
        self.update_room(connection)
        self._fill()

    def refill_soon(self, connection: Connection) -> None:
        """The same at the next turn of the event loop: those that follow may end at once in the same way."""
        self.update_room(connection)
        self._fill_soon()

    def fail(self, stream: Stream, outcome: int, error: object) -> None:
        """A request has ended without an answer."""
        self.free += 1
        self.count_failure(stream.tally, stream.coordinate, outcome, error, stream.lateness_us)

    def take_back(self, connection: Connection, stream: Stream) -> None:
        """The server has refused a request unprocessed: it is retried."""
        self._try_again(connection, stream, stream.outcome, stream.reason)

    def lose(self, connection: Connection, error: object) -> None:
        """A connection is of no further use; if it never was, a request that waited for it has tried once."""
        waiting = connection.origin.waiting
        self._drop(connection)
        if not connection.was_used and waiting and not self._is_closing:
            if connection.is_ready:
                self._try_again(connection, waiting.popleft(), DISCONNECTED, error)
            else:
                self.fail(waiting.popleft(), CONNECT_ERROR, error)
        self._fill()

    def on_connection_settled(self) -> None:
        """Another connection may be made."""
        self._fill()

    def on_connection_failed(self, connection: Connection, error: BaseException) -> None:
        """Fail a request that waits for a connection."""
        self.lose(connection, error)

    def forget(self, connection: Connection) -> None:
        """A connection has ended for good."""
        self._connections.forget(connection)

    def _try_again(self, connection: Connection, stream: Stream, outcome: int, error: object) -> None:
        """A connection has not taken a request: it goes to another one, unless it has tried too often."""
        stream.refusals += 1
        if stream.refusals >= MOST_REFUSALS:
            self.fail(stream, outcome, error)
            return
        stream.prepare_retry()
        stream.refused_by = connection
        connection.origin.waiting.append(stream)

    async def _follow_feed(self, health: Health) -> None:
        self._connect_ahead()
        while True:
            self._fill()
            health.record_success()
            await self.feed.wait()

    def take_due(self) -> bool:
        """Take the requests that are due."""
        self._fill()
        return True

    def has_room(self) -> bool:
        """Whether another request could be sent now, or a connection be made for it."""
        if self.free <= 0:
            return False
        # `current` would drop overdue requests, and the feed itself is asking.
        execution = self.feed.find_first() if len(self._origins) > 1 else None
        if execution is None:
            return any(map(self._can_take, self._origins))
        origin = self.turns[execution.next_index % self._period].origin
        return origin is None or self._can_take(origin)

    def _can_take(self, origin: Origin) -> bool:
        """Whether a request for it could be taken now."""
        return bool(origin.roomy) or self._can_connect(origin) or origin.can_wait(self._streams)

    def _can_connect(self, origin: Origin) -> bool:
        """Whether another connection may be made, for a request that would wait for it."""
        return self._connections.can_make and len(origin.connections) < self._choose_most_connections(origin)

    def _choose_most_connections(self, origin: Origin) -> int:
        """How many connections there may be: the number in the spec, or as many as the window needs."""
        if self._connections_each is not None:
            return self._connections_each
        streams = origin.most_streams or self._streams
        return max(1, min(-(-self.window // streams), count_connections() // len(self._origins)))

    def _fill(self) -> None:
        """Fill the window with requests, as far as streams may be opened."""
        if self._is_filling or self._is_closing:
            return
        self._is_filling, self._will_fill = True, False
        touched: set[RoomyConnection] = set()
        try:
            for origin in self._origins:
                if origin.waiting:
                    self._send_waiting(origin, touched)
            self._take_more(touched)
        finally:
            self._is_filling = False
        for connection in touched:
            connection.flush()

    def _fill_soon(self) -> None:
        """The same at the next turn of the event loop."""
        if not self._will_fill:
            self._will_fill = True
            asyncio.get_running_loop().call_soon(self._fill)

    def _send_waiting(self, origin: Origin, touched: set[RoomyConnection]) -> None:
        """Send the requests that wait for a stream; make connections if there are too few."""
        for _ in range(len(origin.waiting)):
            stream = origin.waiting.popleft()
            connection = origin.find_roomy(stream.refused_by)
            if connection is None or (connection is stream.refused_by and len(origin.connections) > 1):
                origin.waiting.append(stream)
                continue
            if headers := self._build_headers(stream.route, stream.index):
                self._open(connection, stream, headers, touched)
            else:
                self.fail(stream, CONNECT_ERROR, NO_ROW)
        missing = len(origin.waiting) - len(origin.connecting)
        while missing > 0 and self._can_connect(origin):
            self._connect(origin)
            missing -= 1

    def _take_more(self, touched: set[RoomyConnection]) -> None:
        feed, failed = self.feed, 0
        while self.free > 0 and (execution := feed.current) is not None:
            index = execution.next_index
            route = self.turns[index % self._period if self._period > 1 else 0]
            origin = route.origin
            headers = self._build_headers(route, index)
            if origin is None or not headers:
                failed += 1
                if failed > MOST_FAILURES_AT_ONCE:
                    self._fill_soon()
                    return
                self.free -= 1
                self.fail(self._take(route), CONNECT_ERROR, NO_URL if origin is None else NO_ROW)
                continue
            connection = origin.find_roomy()
            if connection is not None:
                self.free -= 1
                self._open(connection, self._take(route), headers, touched)
            elif self._can_connect(origin):
                self.free -= 1
                origin.waiting.append(self._take(route))
                self._connect(origin)
            elif origin.can_wait(self._streams):
                self.free -= 1
                origin.waiting.append(self._take(route))
            else:
                return

    def _open(
        self, connection: RoomyConnection, stream: Stream, headers: Headers, touched: set[RoomyConnection]
    ) -> None:
        connection.open(stream, headers)
        touched.add(connection)
        roomy = connection.origin.roomy
        roomy.pop(connection, None)
        if connection.has_room:
            roomy[connection] = None

    def _take(self, route: Route) -> Stream:
        """Take the next request of the feed, which is for that route."""
        now_ns = monotonic_ns()
        tally, coordinate, index, due_ns = self.feed.pop()
        lateness_us = (now_ns - due_ns) // 1000 if due_ns else 0
        return Stream(route, tally, coordinate, index, now_ns, lateness_us)

    def _connect_ahead(self) -> None:
        """Have connections before the first requests are due."""
        count = min(self.feed.count_first(AHEAD_S), self.free, CONNECTING_AT_ONCE)
        for number in range(0, count, self._streams):
            origin = self.turns[number % self._period].origin
            if origin is not None and self._can_connect(origin):
                self._connect(origin)

    def _build_headers(self, route: Route, index: int) -> Headers:
        """The headers of a request that is about to be taken; none if it cannot be sent."""
        try:
            return route.build_headers(index)
        except DataError as error:
            self._errors.report(CONNECT_ERROR, NO_ROW, error)
            return ()

    def _try_build(self, route: Route, index: int) -> Headers:
        """The same, but that nothing is reported: `_fill` meets it, too."""
        try:
            return route.build_headers(index)
        except DataError:
            return ()

    def _try_only(self, index: int) -> Headers:
        """The same with the only route that there is."""
        return self._try_build(self.turns[0], index)

    def _connect(self, origin: Origin) -> None:
        connection = Connection(self, origin, self._streams)
        origin.connections.add(connection)
        origin.connecting.add(connection)
        self._connections.make(connection, origin.connect(connection))

    def _give_back(self, stream: Stream, *, is_untouched: bool = False) -> None:
        self.free += 1
        stream.tally.execution.give_back(stream.coordinate, is_untouched=is_untouched)

    def _drop(self, connection: Connection) -> None:
        origin = connection.origin
        origin.connections.discard(connection)
        origin.connecting.discard(connection)
        origin.roomy.pop(connection, None)
        connection.close()
        self._connections.give_up(connection)

    def _list_streams(self) -> list[Stream]:
        """All requests that were taken and have not ended."""
        on_connections = [stream for connection in self._connections for stream in connection.streams]
        return on_connections + [stream for origin in self._origins for stream in origin.waiting]

    def sweep(self) -> None:
        """End the requests that have taken longer than the limit, and connections that were idle for long."""
        now_ns = monotonic_ns()
        oldest_ns, oldest_idle_ns = now_ns - self.limit.ns, now_ns - int(KEEPALIVE_S * 1e9)
        for origin in self._origins:
            origin.is_slow = any(each.since_ns < now_ns - SLOW_NS for each in origin.connecting)
            for stream in [each for each in origin.waiting if each.since_ns < oldest_ns]:
                origin.waiting.remove(stream)
                self.fail(stream, TIMEOUT, "")
        for connection in self._connections:
            late = [stream for stream in connection.streams if stream.since_ns < oldest_ns]
            for stream in late:
                connection.reset(stream)
                self.fail(stream, TIMEOUT, "")
            # The server has sent nothing since: it may be gone. Most requests are sent when the answer to
            # another one comes, at the very time of `heard_ns`.
            if any(connection.heard_ns <= stream.since_ns for stream in late):
                connection.retire()
            if late:
                self.update_room(connection)
                connection.flush()
            # A connection without any streams is as useless as one that is not ready.
            elif connection.is_idle and (
                connection.since_ns < (oldest_idle_ns if connection.has_room else oldest_ns)
            ):
                self._drop(connection)
        self._fill()

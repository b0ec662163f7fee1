"""The engine for throughput: protocols of uvloop and the parser of httptools.

One request is in flight on a connection at a time.

There is no task, no future and no timer for a request: connections take indices from the feed as their
responses come in, and one sweep ends what takes too long. What each part is worth is written down in
docs/decisions/0011-httptools-engine.md.
"""

import asyncio
import logging
from collections.abc import Iterator
from itertools import islice
from time import monotonic_ns
from typing import TYPE_CHECKING

from oku_core.accounting.outcome import CONNECT_ERROR, TIMEOUT
from oku_core.data.data_format import DataError
from oku_core.http_client.connector import Way
from oku_core.http_client.error_reason import NO_ROW, NO_URL
from oku_core.process.resources import read_open_files
from oku_core.process.supervision import Health, Supervisor
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import FILES_BESIDE, EngineContext
from oku_workers.engines.http.connection_set import AHEAD_S, CONNECTING_AT_ONCE, ConnectionSet
from oku_workers.engines.http.http_engine import HttpEngine
from oku_workers.engines.http.response_counting import count_answers
from oku_workers.engines.httptools.connection import Connection
from oku_workers.engines.httptools.exchange import AnswerBatch
from oku_workers.engines.httptools.route import Route, build_routes
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol

if TYPE_CHECKING:
    from oku_core.http_client.idle_pool import PooledConnector
    from oku_workers.engines.http.route_table import Routes
    from oku_workers.engines.httptools.request import BuildRequest

_log = logging.getLogger(__name__)

SPARE_CONNECTIONS = 16
MOST_FAILURES_AT_ONCE = 100
"""After so many requests that fail at once, the event loop serves others."""


class HttptoolsEngine(HttpEngine):
    """An `EngineProtocol`, made by `build_engine`; belongs to the thread of the event loop."""

    def __init__(
        self,
        spec: Spec,
        feed: FeedProtocol,
        supervisor: Supervisor,
        context: EngineContext,
    ) -> None:
        super().__init__(spec, feed, supervisor)
        self._free = self.window
        rows = context.rows
        way = Way(context.tls, local_address=context.local_address)
        routes: Routes[Route[Connection], PooledConnector[Connection]] = build_routes(spec, way, rows)
        self.batch = AnswerBatch(asyncio.get_running_loop().call_soon, count_answers)
        self._turns, self._period = routes.turns, len(routes.turns)
        self.turns = routes.turns if len(routes.all) > 1 else None
        self.build: BuildRequest | None = None
        if len(routes.origins) == 1 and not feed.is_paced and not any(route.body for route in routes.all):
            self.build = self._build_turn
            if self.turns is None and rows is None:
                self.build = routes.turns[0].build
        self._origins = routes.origins
        self._most_connections = _choose_most_connections(self.window, len(self._origins))
        self._connections = ConnectionSet[Connection](self)
        self._is_closing = False

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return self.window - self._free

    def start(self) -> None:
        """Begin to take from the feed."""
        super().start()
        self._chores.append(self._supervisor.start("feed", self._follow_feed))

    def flush_counts(self) -> None:
        """Count what has ended and waits for the end of this turn of the event loop to be counted."""
        self.batch.count()

    def _iter_in_flight(self) -> Iterator[tuple[Tally, int]]:
        self.batch.count()
        return ((each.tally, each.coordinate) for each in self._connections if each.tally is not None)

    def set_window(self, window: int) -> None:
        """Have so many requests in flight from now on; those beyond may end."""
        self._free += window - self.window
        self.window = window
        self._most_connections = _choose_most_connections(window, len(self._origins))
        if self._free > 0:
            self._fill()
            return
        busy = (connection for connection in self._connections if connection.tally is not None)
        for connection in islice(busy, -self._free):
            connection.leave_to_owner()

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of a lease that are in flight and give their coordinates back."""
        self.batch.count()
        for connection in self._connections:
            if connection.execution is execution:
                self._give_back(connection)
        self._fill()

    async def close(self) -> None:
        """Stop, give back what is in flight, and close every connection."""
        self._is_closing = True
        self.batch.count()
        self._cancel_chores()
        for origin in self._origins:
            origin.close()
        for connection in self._connections:
            if connection.tally is not None:
                self._give_back(connection)
            else:
                self._drop(connection)
        await self._connections.wait_gone(self._chores)

    def has_room(self) -> bool:
        """Whether another request could be sent now."""
        return self._free > 0

    def take_due(self) -> bool:
        """Take what is due."""
        self._fill()
        return True

    # The connections call these.

    def go_on(self, connection: Connection, now_ns: int) -> None:
        """A response is complete, its connection is free for another request."""
        execution = self.feed.current
        if execution is not None and self._free >= 0:
            index = execution.next_index
            route = self._turns[index % self._period if self._period > 1 else 0]
            try:
                request = route.build(index) if route.origin is connection.origin else b""
            except DataError:  # `_fill` meets it, too, and reports it
                request = b""
            if request:
                tally, coordinate, _, due_ns = self.feed.pop()
                connection.start_request(route, tally, coordinate, now_ns, due_ns)
                connection.send(request)
                return
        connection.rest(now_ns)
        connection.origin.idle.rest(connection, now_ns)
        self._free += 1
        if execution is not None:
            self._fill()

    def release(self, connection: Connection) -> None:
        """A response is complete, its connection cannot take another request."""
        connection.close()
        self._free += 1
        self._fill()

    def lose(self, connection: Connection, outcome: int, error: object) -> None:
        """A connection is of no further use; its request, if it has one, ends with an outcome."""
        tally, coordinate, lateness_us = connection.tally, connection.coordinate, connection.lateness_us
        self._drop(connection)
        if tally is None:
            return
        self._free += 1
        self.count_failure(tally, coordinate, outcome, error, lateness_us)
        self._fill()

    def forget(self, connection: Connection) -> None:
        """A connection has ended for good."""
        self._connections.forget(connection)

    async def _follow_feed(self, health: Health) -> None:
        self._connect_ahead()
        while True:
            self._fill()
            health.record_success()
            await self.feed.wait()

    def _fill(self) -> None:
        """Take requests for what is free in the window, as far as connections may be made."""
        feed, failed = self.feed, 0
        while self._free > 0 and not self._is_closing and (execution := feed.current) is not None:
            route = self._turns[execution.next_index % self._period if self._period > 1 else 0]
            request = self._build_request(route, execution.next_index)
            if route.origin is None or not request:
                failed += 1
                if failed > MOST_FAILURES_AT_ONCE:
                    asyncio.get_running_loop().call_soon(self._fill)
                    return
                self._fail_at_once(NO_URL if route.origin is None else NO_ROW)
                continue
            now_ns = monotonic_ns()
            connection = route.origin.idle.pop(now_ns)
            if connection is None and not self._connections.can_make:
                return
            self._free -= 1
            tally, coordinate, _, due_ns = feed.pop()
            if connection is not None:
                connection.start_request(route, tally, coordinate, now_ns, due_ns)
                connection.send(request)
                continue
            connection = Connection(self, route, request)
            connection.start_request(route, tally, coordinate, now_ns, due_ns)
            self._connect(connection)

    def _connect_ahead(self) -> None:
        """Have connections before the first requests are due."""
        count = min(self.feed.count_first(AHEAD_S), self._free, CONNECTING_AT_ONCE)
        for number in range(count):
            route = self._turns[number % self._period]
            if route.origin is not None and route.keeps_connections:
                self._connect(Connection(self, route))

    def _build_request(self, route: Route[Connection], index: int) -> bytes:
        """The bytes of a request that is about to be taken; nothing if it cannot be sent."""
        try:
            return route.build(index)
        except DataError as error:
            self._errors.report(CONNECT_ERROR, NO_ROW, error)
            return b""

    def _build_turn(self, index: int) -> bytes:
        """The same, with the route whose turn it is, but that nothing is reported: `_fill` meets it, too."""
        try:
            return self._turns[index % self._period].build(index)
        except DataError:
            return b""

    def _fail_at_once(self, reason: str) -> None:
        """Take a request that cannot be sent."""
        now_ns = monotonic_ns()
        tally, coordinate, _, due_ns = self.feed.pop()
        tally.fail(CONNECT_ERROR, coordinate, reason, (now_ns - due_ns) // 1000 if due_ns else 0)

    def _connect(self, connection: Connection) -> None:
        if len(self._connections) >= self._most_connections:
            self._close_idle()
        self._connections.make(connection, connection.origin.connect(connection))

    def _close_idle(self) -> None:
        """Make room for a connection at the origin with the most idle ones."""
        max((origin.idle for origin in self._origins), key=len).close_oldest()

    def on_connection_settled(self) -> None:
        """Another connection may be made."""
        self._fill()

    def on_connection_failed(self, connection: Connection, error: BaseException) -> None:
        """Fail the request that waits for a connection."""
        self.lose(connection, CONNECT_ERROR, error)

    def _give_back(self, connection: Connection) -> None:
        execution, coordinate = connection.execution, connection.coordinate
        assert execution is not None
        self._drop(connection)
        self._free += 1
        execution.give_back(coordinate)

    def _drop(self, connection: Connection) -> None:
        connection.origin.idle.discard(connection)
        connection.close()
        self._connections.give_up(connection)

    def sweep(self) -> None:
        """End the requests that have taken longer than the limit, and connections that were idle for long."""
        now_ns = monotonic_ns()
        oldest_ns = now_ns - self.limit.ns
        for origin in self._origins:
            origin.idle.close_expired(now_ns)
        for connection in self._connections:
            if connection.since_ns < oldest_ns and not connection.is_usable:
                self.lose(connection, TIMEOUT, "no complete response within the limit")


def _choose_most_connections(window: int, origins: int) -> int:
    """How many connections there may be: more than the window if several origins take turns.

    The origin that is asked next is rarely the one that has just answered: with none to spare, connections
    would be closed to one and made to another all the time.
    """
    spare = 0 if origins <= 1 else SPARE_CONNECTIONS + window // 4
    return max(window, min(window + spare, read_open_files() - FILES_BESIDE))

"""The common part of the engines for HTTP: feed, window, timeouts and failures."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from oku_core.http_client.error_reason import explain_error
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import choose_window, limit_window
from oku_workers.engines.http.first_errors import FirstErrors
from oku_workers.engines.http.request_timeout import RequestTimeout, keep_sweeping
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol

if TYPE_CHECKING:
    import asyncio


class HttpEngine:
    """An `EngineProtocol` without user code; belongs to the thread of the event loop.

    Args:
        spec: the requests.
        feed: gives the indices.
        supervisor: runs the sweep of the timeouts.

    Attributes:
        limit: the longest time of a request.
        feed: as given.
        window: how many requests may be in flight.
    """

    fault = ""
    host_load = None
    has_farewell = False

    def __init__(self, spec: Spec, feed: FeedProtocol, supervisor: Supervisor) -> None:
        self.limit = RequestTimeout(spec.timeout_s)
        self.feed = feed
        self.window = limit_window(choose_window(spec), spec)
        self._supervisor = supervisor
        self._errors = FirstErrors()
        self._chores: list[asyncio.Task[None]] = []

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return sum(1 for _ in self._iter_in_flight())

    @property
    def keeps_window(self) -> bool:
        """Whether no more than `window` are in flight; a surplus request is not followed by another."""
        return self.in_flight <= self.window

    async def open(self) -> None:
        """Return at once: connections are made as they are needed."""

    async def run_farewell(self, execution: Execution) -> None:
        """Return at once: there is no user code."""

    def start(self) -> None:
        """Begin to take from the feed."""
        keep_swept = partial(keep_sweeping, self.sweep, self.limit.ns)
        self._chores.append(self._supervisor.start("timeouts", keep_swept))
        self.feed.attach(self)

    def take_due(self) -> bool:
        """Take the requests that are due; False: tasks wait for them in the feed."""
        return False

    def flush_counts(self) -> None:
        """Return at once: every answer is counted when it ends."""

    def group_in_flight(self) -> dict[Execution, list[int]]:
        """The coordinates in flight of each execution that has any."""
        groups: dict[Execution, list[int]] = {}
        for tally, coordinate in self._iter_in_flight():
            groups.setdefault(tally.execution, []).append(coordinate)
        return groups

    def count_failure(
        self, tally: Tally, coordinate: int, outcome: int, error: object, lateness_us: int
    ) -> None:
        """Count a request that ended without a complete answer; log the first one of its outcome.

        Args:
            tally: counts it.
            coordinate: its place in the ledger.
            outcome: its outcome, as an index.
            error: an exception, or a reason.
            lateness_us: how long after its due time it was sent.
        """
        reason = explain_error(outcome, error, self.limit.reason)
        self._errors.report(outcome, reason, error)
        tally.fail(outcome, coordinate, reason, lateness_us)

    def _cancel_chores(self) -> None:
        for chore in self._chores:
            chore.cancel()

    @abstractmethod
    def _iter_in_flight(self) -> Iterator[tuple[Tally, int]]:
        """The tally and the coordinate of each request in flight."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether another request could be sent now."""

    @abstractmethod
    def sweep(self) -> None:
        """End the requests that have taken longer than the limit."""

"""The default engine: aiohttp's client, with one coroutine for each request in flight.

Each slot takes a request, sends it, waits for the end of the body, and takes the next one. There are as many
slots as were ever in use at a time, and one that waits. docs/decisions/0005-aiohttp-engine.md says what each
setting is worth.
"""

import asyncio
import logging
from contextvars import ContextVar
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

from oku_core.accounting.outcome import TIMEOUT
from oku_core.http_client.error_reason import explain_error
from oku_core.process.supervision import Supervisor
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.protocol import get_body
from oku_workers.engines.aiohttp.request import Route, build_routes
from oku_workers.engines.aiohttp.sender import Sender
from oku_workers.engines.aiohttp.session import build_session, classify
from oku_workers.engines.contract.engine_protocol import STUCK_S, EngineContext, choose_window, limit_window
from oku_workers.engines.http.first_errors import FirstErrors
from oku_workers.engines.http.request_timeout import RequestTimeout, keep_sweeping
from oku_workers.engines.http.response_counting import count_answer
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed_protocol import FeedProtocol

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from oku_workers.executions.tally import Tally

MOST_FRESH = 100
"""How many slots begin in one turn of the event loop; the last of them adds others. Each may have to make a
connection, and thousands at once would block the event loop for seconds."""
_GIVEN_BACK, _STUCK = -1, -2
"""The endings, beside the outcomes, of a request that is cut off: its index is given back, and now by its
slot, or before by the engine, since it did not end when it was cut off."""

_log = logging.getLogger(__name__)


class _Slot:
    """One request in flight, or none while `sent_ns` is 0.

    Attributes:
        task: sends it.
        tally: counts it.
        coordinate: its place in the ledger.
        sent_ns: when it was sent.
        lateness_us: how long after its due time that was.
        route: what kind of request it is.
        is_open: whether it may take another request.
        ending: how a request that is being cut off is to be accounted for; an outcome, or given back.
        cut_ns: when it was cut off.
    """

    __slots__ = (
        "coordinate",
        "cut_ns",
        "ending",
        "is_open",
        "lateness_us",
        "route",
        "sent_ns",
        "tally",
        "task",
    )

    task: asyncio.Task[None]
    route: Route

    def __init__(self) -> None:
        self.tally: Tally | None = None
        self.coordinate = self.sent_ns = self.lateness_us = self.cut_ns = 0
        self.ending: int | None = None
        self.is_open = True

    def take(self, feed: FeedProtocol) -> int:
        """Take the next request of a feed, and return its index; it is in flight from now on."""
        self.tally, self.coordinate, index, due_ns = feed.pop()
        self.sent_ns = now_ns = monotonic_ns()
        self.lateness_us = (now_ns - due_ns) // 1000 if due_ns else 0
        return index

    def cut(self, ending: int) -> None:
        """End the request that is in flight; its slot accounts for it with `ending`."""
        if self.sent_ns and self.ending is None:
            self.ending = ending
            self.cut_ns = monotonic_ns()
            self.task.cancel()

    def close(self) -> None:
        """End, whatever is in flight."""
        self.is_open = False
        if self.sent_ns:
            self.cut(_GIVEN_BACK)
        else:
            self.task.cancel()


_slot_at_work: ContextVar[_Slot] = ContextVar("slot")
"""The slot whose task this is."""


class _CancelledByOthersError(Exception):
    """A request was cancelled, and not by its engine."""

    def __str__(self) -> str:
        return "a request was cancelled by something else than its engine"


class AiohttpEngine:
    """An `EngineProtocol`, made by `build_engine`; belongs to the thread of the event loop."""

    def __init__(
        self, spec: Spec, feed: FeedProtocol, supervisor: Supervisor, context: EngineContext
    ) -> None:
        self._feed = feed
        self._supervisor = supervisor
        self._health = supervisor.enlist("requests")
        """The health of all slots together."""
        self._stuck_health = supervisor.enlist("stuck requests")
        self._limit = RequestTimeout(spec.timeout_s)
        mix = RequestMix(spec)
        self._routes = build_routes(mix, spec.timeout_s, context.rows)
        self.window = limit_window(choose_window(spec), spec)
        self._slots: list[_Slot] = []
        self._idle: set[_Slot] = set()
        """Slots that wait for something to take, or have not begun yet."""
        self._stuck: list[_Slot] = []
        """Slots that did not end when they were told to."""
        self._chores: list[asyncio.Task[None]] = []
        self._is_closing = False
        self._errors = FirstErrors()
        find_needs = _find_needs if any(map(any, (route.needs for route in self._routes))) else None
        self._session = build_session(spec, context, _record_connection, find_needs)
        is_altered = spec.cookies or spec.max_redirects > 0
        self._client = Sender(self._session, spec) if is_altered else self._session

    fault = ""
    host_load = None
    has_farewell = False

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return sum(slot.sent_ns != 0 for slot in self._slots)

    async def open(self) -> None:
        """There is nothing to wait for: connections are made as they are needed."""

    def start(self) -> None:
        """Begin to take from the feed."""
        keep_swept = partial(keep_sweeping, self.sweep, self._limit.ns)
        self._chores.append(self._supervisor.start("timeouts", keep_swept))
        self._feed.attach(self)
        self._add_slots()

    def flush_counts(self) -> None:
        """Nothing waits: what has ended is counted at once."""

    def group_in_flight(self) -> dict[Execution, list[int]]:
        """The coordinates that were taken and have not ended, for each execution that has any."""
        groups: dict[Execution, list[int]] = {}
        for slot in self._slots:
            if slot.sent_ns and slot.tally is not None:
                groups.setdefault(slot.tally.execution, []).append(slot.coordinate)
        return groups

    def set_window(self, window: int) -> None:
        """Have so many requests in flight from now on; those beyond may end."""
        self.window = window
        for slot in [slot for slot in self._slots if not slot.sent_ns]:
            if len(self._slots) <= window:
                break
            self._slots.remove(slot)
            slot.close()
        self._add_slots()

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of a lease that are in flight and give their coordinates back."""
        for slot in self._slots:
            if slot.tally is not None and slot.tally.execution is execution:
                slot.cut(_GIVEN_BACK)

    async def take_farewell(self, execution: Execution) -> None:
        """There is nobody to take leave of."""

    async def close(self) -> None:
        """Stop, give back what is in flight, and close every connection."""
        self._is_closing = True
        for chore in self._chores:
            chore.cancel()
        for slot in (*self._slots, *self._stuck):
            slot.close()
        if tasks := [*self._chores, *(slot.task for slot in self._slots)]:
            await asyncio.wait(tasks, timeout=STUCK_S)
        for slot in [slot for slot in self._slots if slot.sent_ns]:
            self._replace(slot)
        await self._session.close()
        self._supervisor.dismiss(self._health)
        self._supervisor.dismiss(self._stuck_health)

    def take_due(self) -> bool:
        """Slots wait in the feed, which wakes them."""
        return False

    def has_room(self) -> bool:
        """Whether another request could be sent now."""
        return bool(self._idle) or len(self._slots) < self.window

    def _add_slots(self) -> None:
        """Have a slot for each request that can be taken, or one that waits; a million slots take 1.6 GB."""
        if self._is_closing:
            return
        missing = min(max(1, self._feed.remaining), MOST_FRESH) - len(self._idle)
        for _ in range(min(missing, self.window - len(self._slots))):
            self._slots.append(_Slot())
            self._start_slot(self._slots[-1])

    def _start_slot(self, slot: _Slot) -> None:
        # Not a task of the supervisor: its frames would lie under those of every request.
        self._idle.add(slot)
        slot.task = asyncio.ensure_future(self._work(slot))
        slot.task.add_done_callback(partial(self._end_slot, slot))

    def _end_slot(self, slot: _Slot, task: asyncio.Task[None]) -> None:
        """The task of a slot has ended; an error is a fault of our own, and the lease must not hang.

        One that somebody else has cancelled begins again, or the window would be smaller from then on.
        """
        self._idle.discard(slot)
        if slot.ending == _STUCK or (task.cancelled() and not slot.is_open):
            return
        error = _CancelledByOthersError() if task.cancelled() else task.exception()
        if error is None:
            return
        slot.sent_ns, slot.ending = 0, None
        if slot.tally is not None and not task.cancelled():
            slot.tally.execution.abandon(error)
        if isinstance(error, Exception):
            pause_s = self._health.record_failure(error)
            asyncio.get_running_loop().call_later(pause_s, self._restart_slot, slot)

    def _restart_slot(self, slot: _Slot) -> None:
        if len(self._slots) > self.window:
            self._retire(slot)
        elif not self._is_closing:
            self._start_slot(slot)

    async def _work(self, slot: _Slot) -> None:
        feed, routes, period, request = self._feed, self._routes, len(self._routes), self._client.request
        self._idle.discard(slot)
        _slot_at_work.set(slot)
        while slot.is_open:
            if feed.current is None:
                slot.tally = None  # its lease may be over, and need not stay in memory
                self._idle.add(slot)
                await feed.wait()  # if that is cut off, `_end_slot` takes it out
                self._idle.discard(slot)
                continue
            index = slot.take(feed)
            slot.route = route = routes[index % period] if period > 1 else routes[0]
            if not self._idle and len(self._slots) < self.window:
                self._add_slots()
            try:
                response = await request(route.method, route.build_url(index), **route.build_arguments(index))
                if response.connection is not None:  # its body has not arrived in one piece with its headers
                    try:
                        await response.content.readany()
                    finally:
                        response.close()
            except (Exception, asyncio.CancelledError) as error:  # every request ends in an outcome
                if not self._account_failure(slot, error):
                    slot.sent_ns = 0  # it is not in flight any more
                    raise
                slot.sent_ns = 0
                await asyncio.sleep(0)  # one that fails without waiting must not hold the event loop up
            else:
                if slot.ending == _STUCK:
                    return
                self._account_answer(slot, response)
            slot.sent_ns = 0
            slot.ending = None
            if len(self._slots) > self.window:
                self._retire(slot)

    def _retire(self, slot: _Slot) -> None:
        """The window has become smaller: a slot ends that has nothing in flight."""
        slot.is_open = False
        if slot in self._slots:
            self._slots.remove(slot)

    def _account_answer(self, slot: _Slot, response: "ClientResponse") -> None:
        latency_ns, tally, answers = monotonic_ns() - slot.sent_ns, slot.tally, slot.route.answers
        assert tally is not None
        status, body = response.status, get_body(response)
        received, first_ns = body.total_bytes, body.first_ns
        outcome, reason = answers.judge(status, received, body.head, body.kept)
        parsed = outcome, status, received, reason
        if latency_ns > answers.ok_ns:
            parsed = self._limit.judge(parsed, latency_ns)
        if first_ns and parsed[0] != TIMEOUT:
            tally.record_split(latency_ns // 1000, (first_ns - slot.sent_ns) // 1000)
        count_answer(tally, slot.coordinate, parsed, latency_ns, slot.lateness_us)

    def _account_failure(self, slot: _Slot, error: BaseException) -> bool:
        """Account for a request that ended with an error; False if it was cancelled by somebody else."""
        tally, ending = slot.tally, slot.ending
        assert tally is not None
        if ending == _STUCK:
            return True
        if ending is not None:  # aiohttp may have made something else of the cancellation
            slot.task.uncancel()
            if ending == _GIVEN_BACK:
                tally.execution.give_back(slot.coordinate)
            else:
                tally.fail(ending, slot.coordinate, self._limit.reason, slot.lateness_us)
            return True
        if not isinstance(error, Exception):
            tally.execution.give_back(slot.coordinate)
            return False
        is_late = monotonic_ns() - slot.sent_ns > self._limit.ns
        outcome = TIMEOUT if is_late else classify(error)
        reason = explain_error(outcome, error, self._limit.reason)
        self._errors.report(outcome, reason, error)
        tally.fail(outcome, slot.coordinate, reason, slot.lateness_us)
        return True

    def sweep(self) -> None:
        """End what takes too long; requests are well unless a slot rests after an error."""
        now_ns = monotonic_ns()
        is_well, stuck = True, []
        for slot in self._slots:
            if not slot.sent_ns:
                is_well = is_well and not slot.task.done()
            elif slot.ending is not None and now_ns - slot.cut_ns > STUCK_S * 1e9:
                stuck.append(slot)
            elif now_ns - slot.sent_ns > self._limit.ns:
                slot.cut(TIMEOUT)
        for slot in stuck:
            self._replace(slot)
        if is_well:
            self._health.record_success()

    def _replace(self, stuck: _Slot) -> None:
        """Give back what did not end when it was cut off, and go on with another slot."""
        assert stuck.tally is not None
        self._slots.remove(stuck)
        self._stuck.append(stuck)
        stuck.ending, stuck.sent_ns, stuck.is_open = _STUCK, 0, False
        stuck.tally.execution.give_back(stuck.coordinate)
        self._stuck_health.trouble = (
            f"requests: {len(self._stuck)} did not end when they were cut off; they were given back"
        )
        _log.error("%s", self._stuck_health.trouble)
        self._add_slots()


def _record_connection(connect_us: int, tls_us: int | None) -> None:
    """A connection was made for the request of a slot, unless that was given back meanwhile."""
    slot = _slot_at_work.get()
    if slot.sent_ns and slot.tally is not None:
        slot.tally.record_connection(connect_us, tls_us)


def _find_needs() -> tuple[int, bool]:
    return _slot_at_work.get().route.needs

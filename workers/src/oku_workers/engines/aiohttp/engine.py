"""The engine with all features of HTTP/1.1: aiohttp's client, with one coroutine for each request in flight.

Each slot takes a request, sends it, waits for the end of the body, and takes the next one. There are as many
slots as were ever in use at a time, and one that waits. docs/decisions/0005-aiohttp-engine.md has the
cost of each setting.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from time import monotonic_ns
from typing import cast

from aiohttp import ClientResponse

from oku_core.accounting.outcome import TIMEOUT
from oku_core.process.supervision import Supervisor
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.protocol import CURRENT_SLOT, AnswerBody, Slot
from oku_workers.engines.aiohttp.route import build_routes
from oku_workers.engines.aiohttp.session import RedirectingClient, build_session, classify_error
from oku_workers.engines.contract.engine_protocol import STUCK_S, EngineContext
from oku_workers.engines.http.http_engine import HttpEngine
from oku_workers.engines.http.response_counting import count_answer
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol

MOST_FRESH = 100
"""How many slots start in one turn of the event loop; the last of them adds others. Each may have to make a
connection, and thousands at once would block the event loop for seconds."""
_FOREIGN_CUT = "a request was cancelled by something else than its engine"


class AiohttpEngine(HttpEngine):
    """An `EngineProtocol`, made by `build_engine`; belongs to the thread of the event loop."""

    def __init__(
        self, spec: Spec, feed: FeedProtocol, supervisor: Supervisor, context: EngineContext
    ) -> None:
        super().__init__(spec, feed, supervisor)
        self._health = supervisor.enlist("requests")
        """The health of all slots together."""
        self._stuck_health = supervisor.enlist("stuck requests")
        self._routes = build_routes(RequestMix(spec), spec.timeout_s, context.rows)
        self._slots: dict[Slot, None] = {}
        """The slots that may send, in the order of their start."""
        self._idle: set[Slot] = set()
        """Slots that wait for a request, or have not started yet."""
        self._ending: dict[Slot, int] = {}
        """When slots were cut off whose tasks have not ended yet."""
        self._session = build_session(spec, context)
        is_altered = spec.cookies or spec.max_redirects > 0
        self._client = RedirectingClient(self._session, spec) if is_altered else self._session

    def start(self) -> None:
        """Begin to take from the feed."""
        super().start()
        self._add_slots()

    def set_window(self, window: int) -> None:
        """Set how many requests may be in flight; surplus requests may end."""
        self.window = window
        idle = [slot for slot in self._slots if slot.tally is None]
        for slot in idle[: max(0, len(self._slots) - window)]:
            self._end(slot)
        self._add_slots()

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of a lease that are in flight and give their coordinates back."""
        for slot in list(self._slots):
            if slot.tally is not None and slot.tally.execution is execution:
                self._end(slot)
        self._add_slots()

    async def close(self) -> None:
        """Stop, give back the requests in flight, and close every connection."""
        self.window = 0
        for slot in list(self._slots):
            self._end(slot)
        self._cancel_chores()
        if tasks := [*self._chores, *(slot.task for slot in self._ending)]:
            await asyncio.wait(tasks, timeout=STUCK_S)
        await self._session.close()
        self._supervisor.dismiss(self._health)
        self._supervisor.dismiss(self._stuck_health)

    def has_room(self) -> bool:
        """Whether another request could be sent now."""
        return bool(self._idle) or len(self._slots) < self.window

    def sweep(self) -> None:
        """Cut off the requests that take too long; requests are well unless a slot rests after an error."""
        now_ns = monotonic_ns()
        for slot in list(self._slots):
            if slot.tally is not None and now_ns - slot.sent_ns > self.limit.ns:
                slot.tally.fail(TIMEOUT, slot.coordinate, self.limit.reason, slot.lateness_us)
                slot.tally = None
                self._end(slot)
        self._add_slots()
        stuck = sum(now_ns - cut_ns > STUCK_S * 1e9 for cut_ns in self._ending.values())
        self._stuck_health.trouble = f"requests: {stuck} did not end when they were cut off" if stuck else ""
        if not any(slot.task.done() for slot in self._slots):
            self._health.record_success()

    def _iter_in_flight(self) -> Iterator[tuple[Tally, int]]:
        return ((slot.tally, slot.coordinate) for slot in self._slots if slot.tally is not None)

    def _add_slots(self) -> None:
        """Have a slot for each request that can be taken, or one that waits; a million slots take 1.6 GB."""
        missing = min(max(1, self.feed.remaining), MOST_FRESH) - len(self._idle)
        for _ in range(min(missing, self.window - len(self._slots))):
            slot = Slot()
            self._slots[slot] = None
            self._start_slot(slot)

    def _start_slot(self, slot: Slot) -> None:
        # Not a task of the supervisor, whose frames would lie below every request.
        self._idle.add(slot)
        slot.task = asyncio.ensure_future(self._work(slot))
        slot.task.add_done_callback(partial(self._on_task_end, slot))

    def _end(self, slot: Slot) -> None:
        """Cut off a slot, and give its request back unless that is accounted for; others take its place."""
        if slot.tally is not None:
            slot.tally.execution.give_back(slot.coordinate)
            slot.tally = None
        del self._slots[slot]
        if slot.task.cancel():
            self._ending[slot] = monotonic_ns()

    def _on_task_end(self, slot: Slot, task: asyncio.Task[None]) -> None:
        """The task of a slot has ended; after an error, which is a fault of our own, it starts again.

        So does a slot that something else has cancelled, or the window would be smaller from then on.
        """
        self._idle.discard(slot)
        self._ending.pop(slot, None)
        if slot not in self._slots:
            return
        error = RuntimeError(_FOREIGN_CUT) if task.cancelled() else task.exception()
        assert isinstance(error, Exception)
        if slot.tally is not None and task.cancelled():
            slot.tally.execution.give_back(slot.coordinate)
        elif slot.tally is not None:  # the lease must not hang
            slot.tally.execution.abandon(error)
        slot.tally = None
        asyncio.get_running_loop().call_later(self._health.record_failure(error), self._start_slot, slot)

    async def _work(self, slot: Slot) -> None:
        feed, slots, routes, request = self.feed, self._slots, self._routes, self._client.request
        period = len(routes)
        self._idle.discard(slot)
        CURRENT_SLOT.set(slot)
        while slot in slots and len(slots) <= self.window:
            if feed.current is None:
                self._idle.add(slot)
                await feed.wait()  # if that is cut off, `_on_task_end` takes it out
                self._idle.discard(slot)
                continue
            index = slot.take(feed)
            slot.route = route = routes[index % period] if period > 1 else routes[0]
            if len(slots) < self.window and not self._idle:
                self._add_slots()
            try:
                response = await request(**route.build(index))
                if response.connection is not None:  # its body has not arrived in one piece with its headers
                    try:
                        await response.content.readany()
                    finally:
                        response.close()
            except Exception as error:  # noqa: BLE001  # every request ends in an outcome
                if slot.tally is not None:  # else it was cut off
                    is_late = monotonic_ns() - slot.sent_ns > self.limit.ns
                    outcome, cause = (TIMEOUT, error) if is_late else classify_error(error)
                    self.count_failure(slot.tally, slot.coordinate, outcome, cause, slot.lateness_us)
                    slot.tally = None
                await asyncio.sleep(0)  # one that fails without waiting must not hold the event loop up
            else:
                self._account_answer(slot, response)
                slot.tally = None
        slots.pop(slot, None)

    def _account_answer(self, slot: Slot, response: ClientResponse) -> None:
        latency_ns, tally, answers = monotonic_ns() - slot.sent_ns, slot.tally, slot.route.answers
        if tally is None:  # it was cut off
            return
        status, body = response.status, cast("AnswerBody", response.content)
        received, first_ns = body.total_bytes, body.first_ns
        outcome, reason = answers.judge(status, received, body.head, body.kept)
        parsed = outcome, status, received, reason
        if latency_ns > answers.ok_ns:
            parsed = self.limit.judge(parsed, latency_ns)
        if first_ns and parsed[0] != TIMEOUT:
            tally.record_split(latency_ns // 1000, (first_ns - slot.sent_ns) // 1000)
        count_answer(tally, slot.coordinate, parsed, latency_ns, slot.lateness_us)

"""Asks the coordinator for its clock, where the worker has another one: directly, since queues delay.

Several questions at first, then one every two seconds while there is work, and now and then without any, so
that the worker can begin at once. An address that does not answer is looked up anew: the coordinator may run
elsewhere by now.
"""

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from oku_core.messaging.clock_exchange import ClockQuestion, decode_clock_answer, seal_question
from oku_core.messaging.order import ClockNotice
from oku_core.messaging.signing import RejectedMessageError, Signer
from oku_core.process.supervision import Health, Supervisor, cancel_tasks
from oku_workers.timing.coordinator_clock import ClockSample, CoordinatorClock

_FIRST_QUESTIONS = 5
_FIRST_INTERVAL_S, _INTERVAL_S, _IDLE_INTERVAL_S = 0.05, 2.0, 10.0
_MOST_UNANSWERED = 5
"""After this many unanswered questions the trouble is reported, and the address is looked up anew."""


class LeaseHolder(Protocol):
    """A worker, as far as the clock depends on it."""

    @property
    def lease_ids(self) -> Sequence[str]:
        """The leases in hand."""
        ...


class ClockClient(asyncio.DatagramProtocol):
    """Asks from `start` to `end`, if there is someone to ask; less often while the worker has no leases."""

    def __init__(
        self,
        signer: Signer,
        clock: CoordinatorClock,
        worker: LeaseHolder,
    ) -> None:
        self._signer = signer
        self._clock = clock
        self._worker = worker
        self._noted = asyncio.Event()
        self._asked: dict[str, int] = {}
        """The questions without an answer: when each was asked, by its nonce."""
        self._attempts = 0
        self._task: asyncio.Task[None] | None = None

    def start(self, supervisor: Supervisor) -> None:
        """Begin, in the running event loop."""
        self._clock.attach(self)
        self._task = supervisor.start("clock", self._keep_asking)

    async def end(self) -> None:
        """End."""
        await cancel_tasks([self._task])

    def on_notice(self) -> None:
        """The coordinator has sent the address to ask."""
        self._noted.set()

    def datagram_received(self, data: bytes, _address: Any) -> None:
        """Take in an answer."""
        answered_ns = time.monotonic_ns()
        try:
            answer = decode_clock_answer(self._signer, data)
        except RejectedMessageError:
            return  # anyone may send a datagram; if no answer is valid, that is a trouble
        # A copy, or the answer to another process, has no question.
        if (asked_ns := self._asked.pop(answer.nonce, None)) is not None:
            self._asked.clear()
            self._clock.add_sample(answer.kernel, ClockSample(asked_ns, answer.monotonic_ns, answered_ns))

    async def _keep_asking(self, health: Health) -> None:
        while True:
            notice = self._clock.notice
            if notice is None or not self._clock.must_ask:
                health.record_success()
                self._noted.clear()
                await self._noted.wait()
                continue
            async with self._open(notice) as ask:
                await self._ask_while_told(notice, ask, health)

    async def _ask_while_told(self, notice: ClockNotice, ask: Callable[[], None], health: Health) -> None:
        count = 0
        while (told := self._clock.notice) and (told.host, told.port) == (notice.host, notice.port):
            if len(self._asked) >= _MOST_UNANSWERED:
                self._attempts += 1
                raise TimeoutError(f"{notice.host}:{notice.port} (UDP) does not tell the coordinator's clock")
            ask()
            count += 1
            if count < _FIRST_QUESTIONS:
                await asyncio.sleep(_FIRST_INTERVAL_S)
            else:
                is_idle = self._clock.is_known and not self._worker.lease_ids
                await asyncio.sleep(_IDLE_INTERVAL_S if is_idle else _INTERVAL_S)
            if not self._asked:
                health.record_success()

    @contextlib.asynccontextmanager
    async def _open(self, notice: ClockNotice) -> AsyncIterator[Callable[[], None]]:
        """A function that asks one of the notice's addresses."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(notice.host, notice.port, type=socket.SOCK_DGRAM)
        family, _, _, _, address = found[self._attempts % len(found)]
        transport, _ = await loop.create_datagram_endpoint(lambda: self, family=family)

        def ask() -> None:
            nonce = secrets.token_hex(16)
            question = seal_question(self._signer, ClockQuestion(nonce=nonce))
            self._asked[nonce] = time.monotonic_ns()
            transport.sendto(question, address)

        self._asked.clear()
        try:
            yield ask
        finally:
            transport.close()

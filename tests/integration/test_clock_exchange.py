"""Workers that do not share the kernel of the coordinator ask for its clock, over real sockets.

Both ends are on this machine and so read the same clock: what is estimated should be zero.
"""

import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import CoordinatorApi
from tests.kit.coordinators.coordinator_in_process import running_coordinator
from tests.kit.faults.slow_datagrams import SlowDatagrams, relaying
from tests.kit.runs.local_run import wait_until

from oku_coordinator.clock.clock_service import ClockService
from oku_core.messaging.clock_exchange import (
    ClockAnswer,
    ClockQuestion,
    decode_clock_answer,
    seal_answer,
    seal_question,
)
from oku_core.messaging.order import ClockNotice
from oku_core.messaging.signing import RejectedMessageError, Rejection, RejectionLog, Signer
from oku_core.process.listener import open_datagram_socket
from oku_core.process.supervision import Health, Supervisor
from oku_workers.timing.clock_client import ClockClient
from oku_workers.timing.coordinator_clock import CoordinatorClock

KERNEL = "the kernel of the coordinator"
SIGNER, STRANGER = Signer(MESSAGE_KEY), Signer(b"another key, of somebody else")
NEVER_S = 1.0
SMALL_S = 0.05
"""The bound of a clock that is well known."""


class _Worker:
    """Has leases all the time."""

    lease_ids = ("r.1",)


class _Rejections(RejectionLog):
    def __init__(self, service: "Service") -> None:
        super().__init__(logging.getLogger(__name__))
        self._service = service

    def record(self, error: RejectedMessageError, peer: str = "") -> None:
        self._service.rejected.append(error.rejection)
        self._service.peers.add(peer)


class Service:
    """A service that tells the clock, and what it dropped."""

    def __init__(self) -> None:
        listening = open_datagram_socket("127.0.0.1", 0)
        self.address = listening.getsockname()
        self.rejected: list[Rejection] = []
        self.peers: set[str] = set()
        self.thread = ClockService(listening, SIGNER, KERNEL, Health("clock"), _Rejections(self))
        self.thread.start()

    def ask(self, *datagrams: bytes) -> list[bytes]:
        """What comes back for datagrams, in a while."""
        answers = []
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asking:
            asking.settimeout(NEVER_S)
            for datagram in datagrams:
                asking.sendto(datagram, self.address)
            try:
                while True:
                    answers.append(asking.recv(2000))
            except TimeoutError:
                return answers


@pytest.fixture
def service() -> Iterator[Service]:
    """One on a free port."""
    service = Service()
    yield service
    service.thread.end()


@asynccontextmanager
async def asking(host_port: tuple[str, int]) -> AsyncIterator[CoordinatorClock]:
    """The clock of a worker elsewhere that asks there, as if it had leases."""
    clock = CoordinatorClock("the kernel of the worker")
    supervisor = Supervisor()
    client = ClockClient(SIGNER, clock, _Worker())
    client.start(supervisor)
    clock.set_notice(ClockNotice(kernel=KERNEL, offset_ns=0, host=host_port[0], port=host_port[1]))
    try:
        yield clock
    finally:
        await client.end()


@asynccontextmanager
async def asking_over(relay: SlowDatagrams) -> AsyncIterator[CoordinatorClock]:
    """The same, over a relay."""
    async with asking(("127.0.0.1", relay.port)) as clock:
        yield clock


async def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)


async def wait_until_known(clock: CoordinatorClock) -> None:
    """Wait for the first answer."""
    await wait_for(lambda: clock.is_known)


def is_well_known(clock: CoordinatorClock) -> bool:
    """Whether its bound is small; on a busy machine, that may take more than one answer."""
    return clock.bound_s is not None and clock.bound_s < SMALL_S


def find_error_s(clock: CoordinatorClock) -> float:
    """How wrong a clock is at least that should show the monotonic clock of this machine."""
    before, shown, after = time.monotonic(), clock.now(), time.monotonic()
    return max(before - shown, shown - after, 0.0)


async def test_a_worker_elsewhere_knows_the_clock_within_its_bound(service: Service) -> None:
    """Within a fraction of a second after it was told whom to ask."""
    async with asking(service.address) as clock:
        await wait_until_known(clock)
        assert clock.bound_s is not None
        assert find_error_s(clock) <= clock.bound_s + 0.0001
        await wait_for(lambda: is_well_known(clock))
        assert find_error_s(clock) <= clock.bound_s + 0.0001


@pytest.mark.parametrize(("there_s", "back_s"), [(0.03, 0.0), (0.0, 0.03), (0.02, 0.02)])
async def test_delays_make_the_bound_larger_and_no_more(
    service: Service, there_s: float, back_s: float
) -> None:
    """It is half of the round trip; if one way takes all of it, the error is as large."""
    async with (
        relaying(service.address, there_s=there_s, back_s=back_s) as relay,
        asking_over(relay) as clock,
    ):
        await wait_until_known(clock)
        await asyncio.sleep(0.3)
        assert clock.bound_s is not None
        assert (there_s + back_s) / 2 <= clock.bound_s
        assert find_error_s(clock) <= clock.bound_s + 0.0001


async def test_answers_of_others_and_copies_change_nothing(service: Service) -> None:
    """Whoever can send datagrams to a worker can neither set its clock nor keep it from the truth."""
    hour_ns = 3_600_000_000_000

    def tamper(answer: bytes) -> list[bytes]:
        true = decode_clock_answer(SIGNER, answer)
        wrong = ClockAnswer(nonce=true.nonce, kernel=KERNEL, monotonic_ns=true.monotonic_ns + hour_ns)
        unasked = ClockAnswer(nonce="00" * 16, kernel=KERNEL, monotonic_ns=hour_ns)
        copied = relay.seen[0]
        forged = seal_answer(SIGNER, wrong).replace(b"monotonic", b"MONOTONIC")
        return [
            seal_answer(STRANGER, wrong),
            forged,
            b"\xff{",
            b"",
            seal_answer(SIGNER, unasked),
            copied,
            answer,
            answer,
        ]

    async with relaying(service.address) as relay:
        relay.tamper = tamper
        async with asking_over(relay) as clock:
            await wait_for(lambda: len(relay.seen) > 3 and is_well_known(clock))
            await asyncio.sleep(0.1)  # until what was tampered with has come
            assert clock.bound_s is not None
            assert is_well_known(clock)
            assert find_error_s(clock) <= clock.bound_s + 0.0001


async def test_a_worker_asks_again_when_answers_are_lost(service: Service) -> None:
    """The first five are, here: it knows the clock by the sixth."""
    lost = []

    def lose(answer: bytes) -> list[bytes]:
        lost.append(answer)
        return [answer] if len(lost) > 5 else []

    async with relaying(service.address) as relay:
        relay.tamper = lose
        async with asking_over(relay) as clock:
            await wait_until_known(clock)
            assert len(lost) > 5


def test_questions_of_strangers_are_not_answered(service: Service) -> None:
    """They are counted by reason; the next true one has its answer."""
    question = ClockQuestion(nonce="ab" * 16)
    true = seal_question(SIGNER, question)
    assert (
        service.ask(seal_question(STRANGER, question), b"", b"{}", b"\xff" * 1500, true.replace(b"ab", b"cd"))
        == []
    )
    assert sorted(service.rejected) == [Rejection.FORGED] * 2 + [Rejection.MALFORMED] * 3
    assert service.peers == {"127.0.0.1"}
    [answer] = service.ask(true)
    assert decode_clock_answer(SIGNER, answer).nonce == question.nonce
    assert len(answer) < 2 * len(true)


@contextmanager
def run_far_worker(broker_url: str, log: Path) -> Iterator[None]:
    """A worker process that is not on the coordinator's machine, as it thinks."""
    command = [sys.executable, "-m", "tests.kit.workers.far_worker", broker_url, "far"]
    with log.open("w") as output, subprocess.Popen(command, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()


async def test_a_coordinator_tells_its_workers_whom_to_ask(tmp_path: Path) -> None:
    """A worker elsewhere learns it with its first order, and tells how well it knows the clock since."""
    with run_broker(tmp_path) as broker_url:
        async with running_coordinator(broker_url, tmp_path, clock_host="127.0.0.1") as (_, api):
            with run_far_worker(broker_url, tmp_path / "worker.log"):
                await asyncio.to_thread(wait_for_bound, api)


def wait_for_bound(api: CoordinatorApi) -> None:
    """Wait until the only worker knows the clock, and well."""
    wait_until(
        lambda: 0 < api.read_metric("oku_clock_bound_seconds") < 2 * SMALL_S,
        20,
        "the worker knows the clock well",
    )

"""The API's port over real connections: what a caller without a token gets, and for how long."""

import asyncio
import contextlib
import gzip
import json
import logging
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.readiness import build_readiness

from oku_coordinator.api.api_server import ApiServer
from oku_coordinator.api.connection_table import ConnectionLimits, DropReason
from oku_coordinator.api.routes import build_api
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.spec.spec import Spec

TOKEN = "t0"
PATIENCE_S = 10.0
LIMITS = ConnectionLimits(most=8, most_per_address=5, head_s=1.0, idle_s=3.0, stalled_s=2.0)
AUTHORIZED = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "
PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


class Caller:
    """One connection."""

    def __init__(self, address: tuple[str, int], receive_buffer: int | None) -> None:
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.connect(address)
        self._socket.settimeout(0)
        self._read = b""

    async def say(self, data: bytes) -> None:
        """Send something, as far as it is taken."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def read_until(self, end: bytes) -> bytes:
        """What comes up to `end`."""
        while end not in self._read:
            self._read += await self._receive()
        found, _, self._read = self._read.partition(end)
        return found

    async def read_answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        head = await self.read_until(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")
        )
        while len(self._read) < length:
            self._read += await self._receive()
        body, self._read = self._read[:length], self._read[length:]
        return int(head.split()[1]), body

    async def is_closed_within(self, seconds: float) -> bool:
        """Whether the server closes it in time; what it sends before is dropped."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self._receive()
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    def leave(self) -> None:
        """Go away."""
        self._socket.close()

    async def _receive(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            data = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
        if not data:
            raise ConnectionAbortedError
        return data


class Port:
    """Where the API listens, and its runs."""

    def __init__(self, runs: Runs, address: tuple[str, int]) -> None:
        self.runs = runs
        self._address = address
        self._callers: list[Caller] = []

    def connect(self, receive_buffer: int | None = None) -> Caller:
        """A new connection."""
        self._callers.append(Caller(self._address, receive_buffer))
        return self._callers[-1]

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of an answer, on a connection of its own."""
        caller = self.connect()
        await caller.say(request)
        answer = await caller.read_answer()
        caller.leave()
        return answer

    def close(self) -> None:
        """End all connections."""
        for caller in self._callers:
            caller.leave()


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Port]:
    """An API that takes few connections."""
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    counter, readiness = ServedCounter(NamedServers([]), ledger), build_readiness(ledger)
    runs = Runs(ledger, counter, LoopSignals(), BrokerTwin(), readiness)
    server = ApiServer(build_api(runs, Metrics(), TOKEN, Troubles()), LIMITS)
    listening = socket.create_server(("127.0.0.1", 0))
    await server.start(listening)
    port = Port(runs, listening.getsockname())
    yield port
    port.close()
    await server.stop()
    ledger.close()


def build_post(body: bytes, *headers: bytes) -> bytes:
    """A spec that is submitted."""
    lines = b"".join(b"%b\r\n" % header for header in headers)
    return b"POST /api/runs HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (
        AUTHORIZED,
        lines,
        len(body),
        body,
    )


async def test_a_packed_body_is_refused(port: Port) -> None:
    """Nothing is unpacked, not even with the token: the answer names the header."""
    body = gzip.compress(b'{"requests": 1}')
    status, answer = await port.ask(build_post(body, b"Content-Encoding: gzip"))
    assert status == 415
    assert "Content-Encoding: gzip is not supported" in json.loads(answer)["error"]
    assert port.runs.fetch_page(10, "") == []


async def test_a_plain_body_of_the_largest_size_is_read(port: Port) -> None:
    """A body is read although its head and its first part come together."""
    body = b'{"requests": 1}'.ljust(1 << 20)
    status, answer = await port.ask(build_post(body))
    assert (status, json.loads(answer)["requests"]) == (201, 1)
    assert (await port.ask(build_post(body + b" ")))[0] == 413


async def test_a_broken_body_is_the_callers_fault(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    """It is answered in one line, without a traceback."""
    chunked = b"POST /api/runs HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\nzz\r\n" % AUTHORIZED
    assert (await port.ask(chunked))[0] == 400
    assert "Traceback" not in caplog.text


async def test_half_a_head_is_not_waited_for(port: Port) -> None:
    """Neither half a head, nor a caller that says nothing, nor half of a second head is waited for."""
    half, silent, second = [port.connect() for _ in range(3)]
    await half.say(HALF)
    await second.say(PROBE)
    assert (await second.read_answer())[0] == 200
    await second.say(HALF)
    for caller in (half, silent, second):
        assert await caller.is_closed_within(LIMITS.head_s + 2)


async def test_an_idle_connection_is_closed(port: Port) -> None:
    """A connection is closed when nothing comes for a while; requests before that are answered."""
    caller = port.connect()
    for _ in range(3):
        await caller.say(PROBE)
        assert (await caller.read_answer())[0] == 200
        await asyncio.sleep(LIMITS.idle_s / 2)
    assert await caller.is_closed_within(LIMITS.idle_s + 2)


async def test_half_heads_make_room_for_whole_ones(port: Port) -> None:
    """A caller is answered however many half-sent heads there are from the same address."""
    halves = [port.connect() for _ in range(20)]
    for half in halves:
        await half.say(HALF)
        assert await port.ask(PROBE) == (200, b"ok\n")
    assert await halves[0].is_closed_within(0.5)


async def test_a_follower_is_not_cut_off(port: Port) -> None:
    """Neither time nor later callers cut a follower off; a refusal says why."""
    run = port.runs.submit(Spec(requests=10)).run
    follow = b"GET /api/runs/%b/ticks HTTP/1.1\r\n%b\r\n" % (run.encode(), AUTHORIZED)
    followers = [port.connect() for _ in range(LIMITS.most_per_address)]
    for follower in followers:
        await follower.say(follow)
        assert b" 200 OK" in await follower.read_until(b"\r\n\r\n")
    status, answer = await port.ask(PROBE)
    assert (status, json.loads(answer)) == (503, {"error": "too many connections from this address are busy"})
    assert not await followers[0].is_closed_within(LIMITS.idle_s + 1)
    port.runs.cancel(run)
    for follower in followers:
        assert b"event: end" in await follower.read_until(b"data: ")


async def test_malformed_requests_are_one_line(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    """Each malformed request is answered; the log has the first one, without a traceback."""
    caplog.set_level(logging.INFO)
    for _ in range(20):
        assert (await port.ask(b"GET / HTTP/1.1\r\nbad header\r\n\r\n"))[0] == 400
    [line] = [record for record in caplog.records if "malformed" in record.message]
    assert line.exc_info is None
    assert "a request from 127.0.0.1 is malformed: Invalid header token" in line.message


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"GET / HTTP/1.1\r\nAuthorization: Bearer s3cret\x00\r\n\r\n", "Invalid header value char"),
        (b"GET / HTTP/1.1\r\nAuthorization: Bearer s3cret" + b"x" * 9000, "Got more than 8190 bytes"),
        (b"GET /s3cret\x01 HTTP/1.1\r\nHost: x\r\n\r\n", "Invalid"),
    ],
)
async def test_what_a_malformed_request_has_sent_is_not_logged(
    port: Port, caplog: pytest.LogCaptureFixture, head: bytes, what: str
) -> None:
    """A token with a character too many is still nearly the token."""
    assert (await port.ask(head))[0] == 400
    assert f"is malformed: {what}" in caplog.text
    assert "s3cret" not in caplog.text


async def test_a_head_without_end_is_cut_off(port: Port) -> None:
    """A head that never ends is cut off long before it takes memory."""
    caller = port.connect()
    await caller.say(b"GET /healthz HTTP/1.1\r\n")
    for number in range(60):
        await caller.say(b"X-%d: %b\r\n" % (number, b"x" * 4000))
    assert await caller.is_closed_within(LIMITS.head_s / 2)


async def test_a_caller_that_does_not_read_is_disconnected(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests that are sent ahead while no answer is read do not pile up."""
    caller = port.connect(receive_buffer=4096)
    # More answers than the buffers between the two can take.
    for _ in range(100):
        await caller.say(100 * b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        while DropReason.OVERDUE not in caplog.text:  # noqa: ASYNC110  # a log has no event
            await asyncio.sleep(0.1)
    assert await caller.is_closed_within(LIMITS.stalled_s / 2)


async def test_a_flood_of_guesses_is_counted_and_makes_few_lines(
    port: Port, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller with the token is answered meanwhile; the server says how many lines were left out."""
    monkeypatch.setattr("oku_coordinator.api.authentication.EVERY_S", 1.0)
    guess = b"DELETE /api/runs/r%0aX HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n"
    guesser = port.connect()
    for _ in range(20):
        await guesser.say(guess * 10)
        assert [(await guesser.read_answer())[0] for _ in range(10)] == [401] * 10
    assert (await port.ask(b"GET /api/runs HTTP/1.1\r\n%b\r\n" % AUTHORIZED))[0] == 200
    _, metrics = await port.ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b'oku_callers_refused_total{credential="token",reason="wrong"} 200.0' in metrics
    line = "a call from 127.0.0.1 is refused: its token is wrong (DELETE /api/runs/{run})"

    def count_told() -> int:
        further = re.findall(r"\(the last of ([\d,]+) like it\)", caplog.text)
        return 1 + sum(int(number.replace(",", "")) for number in further)

    async with asyncio.timeout(PATIENCE_S):
        while count_told() < 200:  # noqa: ASYNC110  # a log has no event
            await asyncio.sleep(0.05)
    assert count_told() == 200
    assert caplog.messages[0] == line
    assert all(message.startswith(f"{line} (the last of ") for message in caplog.messages[1:])

import asyncio
import logging
from collections.abc import Callable

import pytest

from oku_core.delay import parse_delay
from oku_server.count_table import EMPTY_TABLE, CountTable, read_count
from oku_server.fault import FaultRates
from oku_server.plan import Planner
from oku_server.service import Service


class Connection(asyncio.Transport):
    """The connection of one client: sends what the client says, keeps what the server writes."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self._protocol = service.build_web_server()()
        self._protocol.connection_made(self)

    async def say(self, data: bytes) -> bytes:
        """Send `data` and give what is answered at once."""
        before = len(self.written)
        self._protocol.data_received(data)
        await settle()
        return self.written[before:]

    def leave(self) -> None:
        """The client goes away."""
        self._protocol.connection_lost(None)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """The server writes."""
        self.written += data

    def is_closing(self) -> bool:
        """Whether the server closed it."""
        return self.closed

    def close(self) -> None:
        """The server closes it."""
        self.closed = True


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(10):
        await asyncio.sleep(0)


Build = Callable[..., Service]


@pytest.fixture
def block() -> bytearray:
    """The counts of the service."""
    return bytearray(EMPTY_TABLE)


@pytest.fixture
def build(block: bytearray) -> Build:
    """Makes a service."""

    def build_service(*, delay: str = "0s", body: bytes = b"Hello, World!", **rates: float) -> Service:
        planner = Planner(parse_delay(delay), FaultRates(**rates), 0, lambda: 0.0)
        return Service(planner, body, CountTable(block), lambda run: read_count(bytes(block), run))

    return build_service


GET = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("method", [b"GET", b"POST", b"DELETE", b"OPTIONS", b"PATCH"])
async def test_every_method_is_answered_alike(build: Build, method: bytes) -> None:
    """Status 200, the delay and the body, on a connection that stays open."""
    client = Connection(build())
    answer = await client.say(method + b" /a HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nDelay: 0\r\n\r\nHello, World!"
    assert not client.closed
    client.leave()


async def test_a_head_request_gets_the_head_alone(build: Build) -> None:
    """HEAD announces the body and has none."""
    client = Connection(build())
    assert await client.say(b"HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\n") == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nDelay: 0\r\n\r\n"
    )
    client.leave()


async def test_a_long_body_is_written_whole(build: Build) -> None:
    """A body that is not copied behind its head follows it all the same."""
    client = Connection(build(body=b"x" * 100_000))
    answer = await client.say(GET)
    assert answer.partition(b"\r\n\r\n")[2] == b"x" * 100_000
    client.leave()


async def test_the_body_of_a_request_is_ignored(build: Build) -> None:
    """The next request on the connection is found behind it."""
    client = Connection(build(body=b"!"))
    post = b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345"
    assert (await client.say(post + GET)).count(b"HTTP/1.1 200 OK\r\n") == 2
    client.leave()


async def test_a_connection_is_closed_when_the_client_wants_it(build: Build) -> None:
    """`Connection: close` is answered with the same."""
    client = Connection(build())
    answer = await client.say(b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert b"\r\nConnection: close\r\n" in answer
    assert client.closed
    client.leave()


@pytest.mark.parametrize(("asked", "kept"), [(b"", False), (b"Connection: keep-alive\r\n", True)])
async def test_http_1_0_keeps_a_connection_only_if_asked(build: Build, asked: bytes, *, kept: bool) -> None:
    """A client of HTTP/1.0 hears in a header that its connection stays."""
    client = Connection(build())
    answer = await client.say(b"GET /1 HTTP/1.0\r\n" + asked + b"\r\n")
    assert (b"\r\nConnection: keep-alive\r\n" in answer) is kept
    assert client.closed is not kept
    client.leave()


async def test_a_request_is_counted_for_its_run_before_its_delay(build: Build, block: bytearray) -> None:
    """The header names the run; a request that names none is counted, too."""
    client, other = Connection(build(delay="1h")), Connection(build(delay="1h"))
    assert await client.say(b"GET /1 HTTP/1.1\r\nHost: a\r\noku-run: r1\r\n\r\n") == b""
    assert await other.say(GET) == b""
    assert (read_count(block, "r1"), read_count(block, "")) == (1, 1)
    client.leave()
    other.leave()
    await settle()


async def test_a_request_whose_client_is_gone_at_once_is_counted(build: Build, block: bytearray) -> None:
    """What was received counts, whoever still waits for an answer."""
    client = Connection(build())
    await settle()
    client._protocol.data_received(GET)
    # An event loop tells the end of a connection after what it has read from it, in a call of its own.
    asyncio.get_running_loop().call_soon(client.leave)
    await settle()
    assert read_count(block, "") == 1
    assert client.written == b""


async def test_questions_to_the_server_are_neither_counted_nor_delayed(
    build: Build, block: bytearray
) -> None:
    """Health and counts can be asked for while everything else is slow or fails."""
    client = Connection(build(delay="1h", reset=1.0))
    for target in (b"/-/healthz", b"/-/served", b"/-/nothing", b"/-/"):
        assert await client.say(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert read_count(block, "") == 0
    client.leave()


async def test_the_server_tells_what_it_served_for_a_run(build: Build) -> None:
    """The answer is JSON; without a run it is about the requests that named none."""
    client = Connection(build())
    await client.say(b"GET /1 HTTP/1.1\r\nHost: a\r\nOku-Run: a b\r\n\r\n")
    answer = await client.say(b"GET /-/served?run=a%20b HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.endswith(b'\r\n\r\n{"run": "a b", "served": 1}')
    answer = await client.say(b"GET /-/served HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.endswith(b'\r\n\r\n{"run": "", "served": 0}')
    client.leave()


@pytest.mark.parametrize(
    ("target", "status"), [(b"/-/healthz", 200), (b"/-/nothing", 404), (b"/-/served?run=%00", 400)]
)
async def test_questions_are_answered_with_a_status(build: Build, target: bytes, status: int) -> None:
    """A healthy server says so, an unknown question and a name that is no run are refused."""
    client = Connection(build())
    answer = await client.say(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    client.leave()


async def test_an_error_is_status_500_on_a_connection_that_stays(build: Build) -> None:
    """An error status is no reason to close."""
    client = Connection(build(error=1.0))
    assert (await client.say(GET)).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert not client.closed
    client.leave()


async def test_a_truncated_answer_announces_all_and_sends_half(build: Build) -> None:
    """The connection is closed in the middle of the body."""
    client = Connection(build(body=b"0123456789", truncate=1.0))
    head, _, body = (await client.say(GET)).partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: 10\r\n" in head
    assert body == b"01234"
    assert client.closed
    client.leave()


async def test_a_stalled_request_ends_when_its_client_goes_away(build: Build) -> None:
    """Nothing is kept of a request that nobody waits for."""
    before = asyncio.all_tasks()
    client = Connection(build(stall=1.0))
    assert await client.say(GET) == b""
    assert asyncio.all_tasks() > before
    client.leave()
    await settle()
    assert asyncio.all_tasks() == before


async def test_a_client_that_reads_nothing_gets_no_second_answer(build: Build) -> None:
    """While its connection takes no more, its next requests wait."""
    client = Connection(build())
    client._protocol.pause_writing()
    assert (await client.say(GET + GET)).count(b"HTTP/1.1 200 OK") == 1
    client._protocol.resume_writing()
    await settle()
    assert client.written.count(b"HTTP/1.1 200 OK") == 2
    client.leave()


async def test_a_malformed_request_is_refused_without_a_word_in_the_log(
    build: Build, block: bytearray, caplog: pytest.LogCaptureFixture
) -> None:
    """The client is told with status 400, nothing is counted, and no traceback fills the log."""
    client = Connection(build())
    with caplog.at_level(logging.DEBUG):
        answer = await client.say(b"GET / HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n")
    assert answer.split()[1] == b"400"
    assert read_count(block, "") == 0
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]
    client.leave()


async def test_a_defect_of_the_server_is_logged(
    build: Build, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not the client's mistake is told with its traceback."""
    service = build()

    def fail(_run: str) -> int:
        raise OSError("the disk is gone")

    monkeypatch.setattr(service, "_fetch_served", fail)
    client = Connection(service)
    assert (await client.say(b"GET /-/served HTTP/1.1\r\nHost: a\r\n\r\n")).startswith(b"HTTP/1.1 500 ")
    assert "the disk is gone" in caplog.text
    client.leave()

"""The delay server under clients that a well-behaved HTTP library is not."""

import asyncio
import contextlib
import re
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.servers.delay_server import PATIENCE_S, DelayServer, Start, until

from oku_core.spec.values.delay import parse_delay

GET = b"GET /1 HTTP/1.1\r\nHost: a\r\nOku-Run: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nDelay: 0\r\n\r\nHello, World!"
LATE_S = 0.5
"""How late an answer may be on a machine that does other things, too."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    servers = Start(tmp_path)
    yield servers
    servers.end()


@pytest.fixture
def many_files() -> Iterator[None]:
    """Lets this process have thousands of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(server: DelayServer) -> socket.socket:
    """A connection that sends what it is told at once."""
    connection = socket.create_connection(server.endpoint, PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read(connection: socket.socket, length: int) -> bytes:
    """So many bytes, less at the end of the connection."""
    data = b""
    while len(data) < length and (piece := connection.recv(length - len(data))):
        data += piece
    return data


def ask(server: DelayServer, target: bytes) -> bytes:
    """The answer to a question on a connection of its own."""
    with connect(server) as connection:
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))


def count(server: DelayServer) -> int:
    """What the server counted for run `a`."""
    return int(re.findall(rb'"served": (\d+)', ask(server, b"/-/served?run=a"))[0])


def measure_kb(server: DelayServer, field: str = "VmRSS") -> int:
    """The memory of the server."""
    return int(re.findall(rf"{field}:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())[0])


def test_a_request_may_come_in_two_pieces_split_anywhere(start: Start) -> None:
    """Each time another byte begins the second piece; the connection stays the same."""
    server = start()
    with connect(server) as connection:
        for place in range(1, len(GET)):
            connection.sendall(GET[:place])
            time.sleep(0.001)
            connection.sendall(GET[place:])
            assert read(connection, len(OK)) == OK
            connection.sendall(GET)
            assert read(connection, len(OK)) == OK
    assert count(server) == 2 * (len(GET) - 1)


def test_requests_that_are_sent_ahead_are_answered_in_order(start: Start) -> None:
    """Each after its own delay, though the one behind it has a shorter one."""
    server = start("--delay", "1ms..30ms")
    delays = [parse_delay("1ms..30ms").draw_s(0, index) for index in range(40)]
    with connect(server) as connection:
        started_at = time.monotonic()
        connection.sendall(b"".join(GET.replace(b" /1 ", b" /%d " % index) for index in range(40)))
        data = b""
        while data.count(b"Hello, World!") < 40:
            data += connection.recv(65536)
    assert time.monotonic() - started_at >= sum(delays)
    assert [float(told) for told in re.findall(rb"Delay: (\S+)", data)] == pytest.approx(delays)


def test_a_million_requests_ahead_do_not_fill_the_memory(start: Start) -> None:
    """What a client sends while its first request waits is left in the network."""
    server = start("--delay", "1h")
    before_kb = measure_kb(server)
    with connect(server) as connection:
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):
                connection.sendall(GET * 1000)
        assert measure_kb(server) - before_kb < 8_000
    assert 0 < count(server) < 1_000_000


def test_a_client_that_reads_nothing_does_not_fill_the_memory(start: Start) -> None:
    """Its answers are not made before it has read those before them; then all of them come."""
    server = start("--body", "1MB")
    before_kb = measure_kb(server)
    with connect(server) as connection:
        connection.sendall(GET * 99 + GET.replace(b"Host", b"Connection: close\r\nHost"))
        until(lambda: count(server) == 100)
        time.sleep(0.2)
        assert measure_kb(server) - before_kb < 20_000
        received = 0
        while piece := connection.recv(10**6):
            received += len(piece)
    assert received > 100 * 10**6


@pytest.mark.parametrize("fault", ["--delay=1h", "--stall-rate=1"])
def test_nothing_is_kept_of_clients_that_gave_up(start: Start, fault: str) -> None:
    """Thousands that leave while they wait take the memory with them that they needed, but count."""
    server = start(fault)

    def give_up(clients: range) -> None:
        for client in clients:
            with connect(server) as connection:
                connection.sendall(GET)
            if client % 100 == 0:
                # A server that falls behind has more of them at a time, and needs memory for them.
                until(lambda expected=client: count(server) == expected)  # type: ignore[misc]

    give_up(range(1, 501))
    before_kb = measure_kb(server)
    give_up(range(501, 4501))
    assert measure_kb(server) - before_kb < 1_000


@pytest.mark.parametrize(
    "hostile",
    [
        b"\0" * 100,
        b"\x16\x03\x01",
        b"GET",
        b"GET /" + b"x" * 10**6,
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10**5,
    ],
    ids=["zeros", "tls", "nothing more", "target", "headers"],
)
def test_a_hostile_client_disturbs_nobody(start: Start, hostile: bytes) -> None:
    """It is refused or waits, others are served."""
    server = start()
    with connect(server) as connection, connect(server) as other:
        with contextlib.suppress(ConnectionError):
            connection.sendall(hostile)
        other.sendall(GET)
        assert read(other, len(OK)) == OK
    assert count(server) == 1


async def test_thousands_wait_each_as_long_as_it_is_told(start: Start, many_files: None) -> None:
    """Never less, and the server needs little memory for each."""
    clients = 3000
    server = start("--delay", "500ms..2500ms")
    before_kb = measure_kb(server)
    lateness: list[float] = []

    async def wait(index: int, limit: asyncio.Semaphore) -> None:
        async with limit:
            reader, writer = await asyncio.open_connection(*server.endpoint)
        started_at = time.monotonic()
        writer.write(GET.replace(b" /1 ", b" /%d " % index))
        head = await reader.readuntil(b"\r\n\r\n")
        lateness.append(time.monotonic() - started_at - float(re.findall(rb"Delay: (\S+)", head)[0]))
        writer.close()

    limit = asyncio.Semaphore(200)
    await asyncio.gather(*(wait(index, limit) for index in range(clients)))
    assert min(lateness) >= 0
    assert sorted(lateness)[clients // 2] < LATE_S
    assert measure_kb(server, "VmHWM") - before_kb < 4 * clients

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.kit.requirement import miss
from tests.kit.servers.delay_server import OKU, PATIENCE_S, DelayServer, Start, until

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.fault import Fault, FaultRates
from oku_server.counts.count_table import read_count

TIMER_ERROR_S = 0.002
"""The event loop counts in milliseconds."""

needs_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="children are known and end so on Linux only"
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    servers = Start(tmp_path)
    yield servers
    servers.end()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that opens a connection for every request."""
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        # Else it silently repeats a GET whose connection is reset, and the counts disagree.
        session._retry_connection = False  # noqa: SLF001  # aiohttp has no other switch for it
        yield session


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def fetch_served(client: aiohttp.ClientSession, server: DelayServer, run: str) -> int:
    """What the server counted for a run."""
    async with client.get(f"{server.url}/-/served", params={"run": run}) as response:
        answer: dict[str, Any] = await response.json()
    assert answer.keys() == {"run", "served", "store", "kept", "forgotten", "processes"}
    assert answer["run"] == run
    assert all(5 < process["peak_rss_mb"] < 5000 for process in answer["processes"])
    served: int = answer["served"]
    return served


async def send(client: aiohttp.ClientSession, server: DelayServer, run: str, count: int) -> None:
    """Make `count` requests of a run."""

    async def send_one(index: int) -> None:
        async with client.get(f"{server.url}/{index}", headers={"Oku-Run": run}) as response:
            await response.read()

    await asyncio.gather(*(send_one(index) for index in range(count)))


async def fetch_delays(client: aiohttp.ClientSession, server: DelayServer, count: int) -> list[float]:
    """The delays that the first indices are told, each of them waited for."""

    async def fetch_delay(index: int) -> float:
        started_at = time.monotonic()
        async with client.get(f"{server.url}/{index}") as response:
            delay_s = float(response.headers["Delay"])
        assert time.monotonic() - started_at >= delay_s - TIMER_ERROR_S
        return delay_s

    return await asyncio.gather(*(fetch_delay(index) for index in range(count)))


async def test_an_answer_has_a_status_a_delay_and_a_body(start: Start, client: aiohttp.ClientSession) -> None:
    """GET /NAME is answered as the documentation says."""
    server = start("--delay", "20ms")
    async with client.get(f"{server.url}/anything") as response:
        assert response.status == 200
        assert response.headers["Delay"] == "0.02"
        assert await response.text() == "Hello, World!"


async def test_delays_are_waited_for_and_the_same_on_every_server(
    start: Start, client: aiohttp.ClientSession
) -> None:
    """Seed and index decide on a delay, also with several processes; another seed gives others."""
    flags = ("--delay", "1ms..30ms", "--seed", "5")
    first = await fetch_delays(client, start(*flags), 40)
    again = await fetch_delays(client, start(*flags, "--processes", "2"), 40)
    other = await fetch_delays(client, start("--delay", "1ms..30ms", "--seed", "6"), 40)
    delay = parse_delay("1ms..30ms")
    assert first == again == pytest.approx([delay.draw_s(5, index) for index in range(40)])
    assert other == pytest.approx([delay.draw_s(6, index) for index in range(40)])
    assert first != other


async def test_a_body_may_be_large_or_a_file(
    start: Start, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Sizes and files arrive byte by byte."""
    (tmp_path / "body").write_bytes(bytes(range(256)) * 4096)
    for flag, body in ((f"@{tmp_path / 'body'}", bytes(range(256)) * 4096), ("3MiB", b"x" * 3 * 2**20)):
        async with client.get(f"{start('--body', flag).url}/1") as response:
            assert await response.read() == body


def test_a_connection_is_kept_whatever_the_client_uploads(start: Start) -> None:
    """Requests with bodies of any size follow each other on one connection."""
    connection = http.client.HTTPConnection(*start().endpoint, timeout=PATIENCE_S)
    ports = set()
    for size in (0, 10, 3_000_000, 10):
        connection.request("POST", "/1", body=b"x" * size)
        assert connection.getresponse().read() == b"Hello, World!"
        ports.add(connection.sock.getsockname())
    connection.close()
    assert len(ports) == 1


async def test_the_requests_of_all_processes_are_counted_by_run(
    start: Start, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Every process serves a part of the requests, each of them tells the sum."""
    server = start("--processes", "2", "--counts-dir", str(tmp_path / "counts"))
    await send(client, server, "a", 120)
    await send(client, server, "b", 30)
    for _ in range(8):
        assert await fetch_served(client, server, "a") == 120
        assert await fetch_served(client, server, "b") == 30
    parts = [read_count(path.read_bytes(), "a") for path in (tmp_path / "counts").glob("served-*.bin")]
    assert len(parts) == 2
    assert sum(parts) == 120
    assert all(parts)


async def test_servers_may_share_a_directory_of_counts(
    start: Start, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Each of two servers tells what both have served."""
    servers = [start("--counts-dir", str(tmp_path / "counts"), "--processes", "2") for _ in range(2)]
    for server in servers:
        await send(client, server, "a", 10)
    assert [await fetch_served(client, server, "a") for server in servers] == [20, 20]


async def test_a_request_is_counted_though_its_client_left_at_once(
    start: Start, client: aiohttp.ClientSession
) -> None:
    """Whoever sent a request has it in the count, however it ended."""
    server = start("--delay", "1h")
    for _ in range(20):
        with socket.create_connection(server.endpoint) as connection:
            connection.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\nOku-Run: a\r\n\r\n")
    assert await fetch_served(client, server, "a") == 20


@needs_linux
async def test_the_death_of_a_child_costs_no_count_and_it_is_started_again(
    start: Start, client: aiohttp.ClientSession
) -> None:
    """After kill -9 of every child, others take their places, and nothing that was counted is lost."""
    server = start("--processes", "2")
    await send(client, server, "a", 50)
    before = server.children
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(server.children) == 2 and not set(server.children) & set(before))
    assert await fetch_served(client, server, "a") == 50
    await send(client, server, "a", 50)
    assert await fetch_served(client, server, "a") == 100
    assert server.log.count("ended with signal 9, it is started again") == 2


@needs_linux
async def test_children_die_with_their_parent_and_counts_stay(
    start: Start, client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """After kill -9 of a server none of its processes is left, and the next server goes on with them."""
    flags = ("--processes", "2", "--counts-dir", str(tmp_path / "counts"))
    server = start(*flags)
    await send(client, server, "a", 50)
    children = server.children
    server.process.kill()
    server.process.wait(PATIENCE_S)
    until(lambda: not any(is_alive(pid) for pid in children))
    again = start(*flags)
    await send(client, again, "a", 7)
    assert await fetch_served(client, again, "a") == 57
    assert len(list((tmp_path / "counts").glob("served-*.bin"))) == 2


async def test_each_index_meets_its_fault(start: Start, client: aiohttp.ClientSession) -> None:
    """Errors, resets, stalls, truncated bodies and proper answers happen to the indices that are theirs."""
    rates = FaultRates(error=0.2, reset=0.2, stall=0.2, truncate=0.2)
    flags = [f"--{fault}-rate={rate}" for fault, rate in rates.by_fault.items()]
    server = start(*flags, "--seed", "3", "--body", "10B")

    async def meet(index: int) -> Fault | None:
        try:
            async with client.get(
                f"{server.url}/{index}",
                headers={"Oku-Run": "a"},
                timeout=aiohttp.ClientTimeout(total=3.0),
            ) as response:
                await response.read()
                return None if response.status == 200 else Fault.ERROR
        except TimeoutError:
            return Fault.STALL
        except aiohttp.ClientPayloadError:
            return Fault.TRUNCATE
        except aiohttp.ClientConnectionError:
            return Fault.RESET

    met = await asyncio.gather(*(meet(index) for index in range(60)))
    assert met == [rates.draw(3, index) for index in range(60)]
    assert set(met) == {None, *Fault}
    assert await fetch_served(client, server, "a") == 60


def test_a_reset_is_a_reset(start: Start) -> None:
    """The client sees ECONNRESET, not the orderly end of a connection."""
    with socket.create_connection(start("--reset-rate", "1").endpoint) as connection:
        connection.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_a_truncated_answer_ends_in_order_after_half_of_its_body(start: Start) -> None:
    """The client gets the whole head and the first half, then the end."""
    with socket.create_connection(start("--truncate-rate", "1", "--body", "1MB").endpoint) as connection:
        connection.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    assert b"Content-Length: 1000000\r\n" in head
    assert len(body) == 500_000


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("taken_by", ["1", "2"])
def test_a_port_in_use_is_answered_with_one_line(start: Start, taken_by: str, processes: str) -> None:
    """Exit code 2 and no traceback, also where both servers would share their ports."""
    port = str(start("--processes", taken_by).endpoint[1])
    command = [str(OKU), "server", "--port", port, "--processes", processes, "--log-format", "text"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"oku: --port: {port} is in use on 127.0.0.1\n"


def test_a_server_that_cannot_start_leaves_no_ready_file(start: Start, tmp_path: Path) -> None:
    """What an earlier server wrote there is gone, so that nobody takes it for this one's address."""
    ready_file = tmp_path / "ready"
    ready_file.write_text("127.0.0.1:1\n")
    port = str(start().endpoint[1])
    command = [str(OKU), "server", "--port", port, "--ready-file", str(ready_file)]
    ended = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2
    assert not ready_file.exists()


def test_an_address_of_another_machine_is_answered_with_one_line() -> None:
    """A server listens on addresses of its machine only (192.0.2.1 is nobody's)."""
    command = [str(OKU), "server", "--host", "192.0.2.1", "--log-format", "text"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "oku: --host: 192.0.2.1 is not an address of this machine\n"


def test_a_server_listens_on_ipv6(start: Start) -> None:
    """An address in brackets is what stands in the ready file."""
    if not socket.has_ipv6:
        miss("this machine has no IPv6")
    server = start("--host", "::1")
    assert server.address == f"[::1]:{server.endpoint[1]}"
    with socket.create_connection(server.endpoint) as connection:
        connection.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


@needs_linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("processes", ["1", "2"])
async def test_a_signal_ends_a_server_though_requests_wait(
    start: Start, client: aiohttp.ClientSession, processes: str, number: signal.Signals
) -> None:
    """Requests in flight are dropped, every process ends, with exit code 0 and without complaints."""
    server = start("--processes", processes, "--delay", "1h")
    children = server.children
    waiting = [asyncio.create_task(send(client, server, "a", 1)) for _ in range(50)]
    async with asyncio.timeout(PATIENCE_S):
        while await fetch_served(client, server, "a") < 50:  # noqa: ASYNC110  # it happens in another process
            await asyncio.sleep(0.01)
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE_S) == 0
    assert not any(is_alive(pid) for pid in children)
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert {isinstance(end, aiohttp.ClientConnectionError) for end in ends} == {True}
    assert len(server.log.splitlines()) == 1


@needs_linux
def test_a_child_that_does_not_end_is_killed(start: Start) -> None:
    """A child that takes no signal holds its server up for less than a second."""
    server = start("--processes", "2")
    children = server.children
    os.kill(children[0], signal.SIGSTOP)
    server.process.terminate()
    assert server.process.wait(PATIENCE_S) == 0
    assert not any(is_alive(pid) for pid in children)


def test_a_server_says_where_it_listens_and_how(start: Start) -> None:
    """One line on the error stream."""
    one = start()
    assert json.loads(one.log)["message"] == f"listening on {one.url}, 1 process, delay 0s"
    two = start("--processes", "2", "--delay", "0..3s")
    assert json.loads(two.log)["message"] == f"listening on {two.url}, 2 processes, delay 0..3s"

"""How connections are made and how long that took, with a network that the test is."""

import asyncio
import socket
import ssl
from typing import Any
from unittest.mock import MagicMock

import pytest
from yarl import URL

from oku_core.http_client import connector
from oku_core.http_client.connector import (
    MOST_ORIGINS,
    Connector,
    OriginConnection,
    OriginTable,
    ProxyError,
    Way,
)
from oku_core.http_client.idle_pool import PooledConnector


class Network:
    """Stands for addresses and for the event loop; each step takes 5 ms.

    Attributes:
        lone: the only address of the host, if it has only one.
        made: what the event loop was asked to connect.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lone: str | None = None
        self.now_ns = 10**9
        self.made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.is_closed = False
        self.fault: OSError | None = None
        monkeypatch.setattr(connector, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(connector, "Addresses", self._begin)
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", self._create)

    def _begin(self, *args: object) -> "Network":
        self.asked = args
        return self

    async def find_lone(self) -> str | None:
        """The only address."""
        self.now_ns += 5_000_000
        return self.lone

    async def connect(self) -> str:
        """Connect to one of several."""
        self.now_ns += 5_000_000
        if self.fault is not None:
            raise self.fault
        return "socket"

    def close(self) -> None:
        """Give up."""
        self.is_closed = True

    async def _create(self, build: Any, *args: Any, **kwargs: Any) -> None:
        self.now_ns += 5_000_000
        self.made.append((args, kwargs))
        assert isinstance(build(), OriginConnection)


@pytest.fixture
async def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """Nothing is connected yet."""
    return Network(monkeypatch)


class Connection(OriginConnection):
    """One with nothing else."""

    __slots__ = ("begun_ns", "connect_us")


async def connect(url: str, tls: ssl.SSLContext | None = None, proxy: URL | None = None) -> OriginConnection:
    """Make a connection."""
    connection = Connection()
    await Connector(URL(url), Way(tls, proxy, "192.0.2.7")).connect(connection)
    return connection


async def test_a_lone_address_is_connected_to_at_once(network: Network) -> None:
    """Finding it is not a part of connecting."""
    network.lone = "192.0.2.1"
    connection = await connect("http://name.example")
    assert network.asked == ("name.example", 80, "192.0.2.7")
    assert network.made == [(("192.0.2.1", 80), {})]
    assert connection.measure() == (5000, None)


async def test_one_of_several_addresses_is_chosen_first(network: Network) -> None:
    """That is a part of connecting."""
    connection = await connect("http://name.example:8080")
    assert network.made == [((), {"sock": "socket"})]
    assert connection.measure() == (10_000, None)


@pytest.mark.parametrize("lone", [None, "192.0.2.1"])
async def test_tcp_and_tls_are_timed_apart(network: Network, lone: str | None) -> None:
    """The server is asked for by its name without a last dot, whatever its address is."""
    network.lone = lone
    tls = ssl.create_default_context()
    connection = await connect("https://name.example.", tls)
    assert network.made == [((), {"sock": "socket", "ssl": tls, "server_hostname": "name.example"})]
    assert connection.measure() == (5000, 5000)


async def test_an_address_that_cannot_be_reached_is_told(network: Network) -> None:
    """Whoever wants the connection has to know."""
    network.fault = ConnectionRefusedError(111, "refused")
    with pytest.raises(ConnectionRefusedError):
        await connect("http://name.example")
    assert network.made == []


async def test_a_proxy_that_cannot_be_reached_is_to_blame(network: Network) -> None:
    """The target was not asked."""
    network.fault = ConnectionRefusedError(111, "refused")
    with pytest.raises(ProxyError) as caught:
        await connect("http://name.example", proxy=URL("http://proxy.example:3128"))
    assert network.asked == ("proxy.example", 3128, "192.0.2.7")
    assert caught.value.cause is network.fault


async def test_closing_gives_up_a_lookup(network: Network) -> None:
    """Nobody waits for its answer any more."""
    Connector(URL("http://name.example"), Way()).close()
    assert network.is_closed
    assert network.asked == ("name.example", 80, None)


async def test_a_table_of_origins_makes_room_without_cutting_a_request_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oldest origin is forgotten; a request that still waits for its lookup gets its answer."""
    loop, is_found = asyncio.get_running_loop(), asyncio.Event()

    async def look_up(host: str, port: int, **_: object) -> list[Any]:
        if host == "slow.example":
            await is_found.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))]

    async def create(*_: object) -> None:
        """Connect at once."""

    monkeypatch.setattr(loop, "getaddrinfo", look_up)
    monkeypatch.setattr(loop, "create_connection", create)
    table = OriginTable(lambda url: Connector(url, Way()))
    slow = table.find(URL("http://slow.example/a"))
    waiting = asyncio.ensure_future(slow.connect(Connection()))
    await asyncio.sleep(0)
    for number in range(MOST_ORIGINS):
        await table.find(URL(f"http://host-{number}.example/")).connect(Connection())
    assert (len(list(table)), slow in table) == (MOST_ORIGINS, False)
    assert table.find(URL("http://host-0.example:80/b")) is next(iter(table))
    await asyncio.sleep(0)
    is_found.set()
    await waiting
    table.close()


async def test_a_table_of_origins_closes_what_it_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to a forgotten origin are not reused, and lookups end with the table."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", lambda *_, **__: asyncio.Event().wait())
    table: OriginTable[PooledConnector[Any]] = OriginTable(lambda url: PooledConnector(url, Way()))
    first = table.find(URL("http://first.example/"))
    idle = MagicMock(is_usable=True)
    first.idle.rest(idle, 0)
    for number in range(MOST_ORIGINS):
        last = table.find(URL(f"http://host-{number}.example/"))
    assert idle.close.call_count == 1
    waiting = asyncio.ensure_future(last.connect(Connection()))
    await asyncio.sleep(0)
    table.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting

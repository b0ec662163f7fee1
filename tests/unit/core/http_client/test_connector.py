"""How connections are made and how long that took, with a network that the test is."""

import asyncio
import socket
import ssl
from typing import Any
from unittest.mock import AsyncMock, MagicMock

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
    """The oldest origin loses its idle connections; a request that waits for its lookup goes on."""
    loop, is_found = asyncio.get_running_loop(), asyncio.Event()

    async def look_up(*_: object, **__: object) -> list[Any]:
        await is_found.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))]

    monkeypatch.setattr(loop, "getaddrinfo", look_up)
    monkeypatch.setattr(loop, "create_connection", AsyncMock())
    table: OriginTable[PooledConnector[Any]] = OriginTable(lambda url: PooledConnector(url, Way()))
    oldest = table.find(URL("http://oldest.example/a"))
    assert table.find(URL("http://oldest.example:80/b")) is oldest
    idle = MagicMock(is_usable=True)
    oldest.idle.rest(idle, 0)
    others = [table.find(URL(f"http://host-{number}.example/")) for number in range(MOST_ORIGINS)]
    assert (list(table), idle.close.call_count) == (others, 1)
    going_on, given_up = (asyncio.ensure_future(each.connect(Connection())) for each in (oldest, others[0]))
    await asyncio.sleep(0)
    table.close()
    await asyncio.wait([given_up])
    is_found.set()
    await going_on
    assert given_up.cancelled()

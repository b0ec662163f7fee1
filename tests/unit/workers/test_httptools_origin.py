"""Which address is asked, with a network that the test is."""

import asyncio
import socket
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from yarl import URL

from oku_workers.engines.httptools_origin import Origin


class Network:
    """Stands for the event loop's connections."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: tuple[str, ...] = addresses
        self.refusing: set[str] = set()
        self.lookups = 0
        self.asked: list[str] = []
        self.now = 0.0

    async def getaddrinfo(self, _: str, port: int, **__: object) -> list[Any]:
        """The addresses, each as often as there are protocols."""
        self.lookups += 1
        await asyncio.sleep(0)
        if not self.addresses:
            raise socket.gaierror(-2, "no such name")
        return [(0, 0, 0, "", (address, port)) for address in self.addresses for _ in range(2)]

    async def create_connection(self, _: object, host: str, *__: object, **___: object) -> None:
        """Connect to a literal address."""
        self.asked.append(host)
        await asyncio.sleep(0)
        if host in self.refusing:
            raise ConnectionRefusedError(111, f"refused by {host}")


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """Two addresses for every name."""
    network = Network("a", "b")
    loop = SimpleNamespace(
        getaddrinfo=network.getaddrinfo,
        create_connection=network.create_connection,
        time=lambda: network.now,
    )
    monkeypatch.setattr(
        "oku_workers.engines.httptools_origin.asyncio.get_running_loop", lambda: loop, raising=True
    )
    return network


CONNECTION: Any = object()


@dataclass(eq=False)
class Idle:
    """A connection without a request."""

    is_usable: bool


def build_origin() -> Origin:
    """A place with a name."""
    return Origin(URL("http://name.example:80"), None)


async def test_addresses_are_used_in_turn(network: Network) -> None:
    """Each gets its share of the connections."""
    origin = build_origin()
    for _ in range(10):
        await origin.connect(CONNECTION)
    assert Counter(network.asked) == {"a": 5, "b": 5}


async def test_a_name_is_looked_up_once(network: Network) -> None:
    """For all who ask at once and those who come later, until the answer is old."""
    origin = build_origin()
    await asyncio.gather(*(origin.connect(CONNECTION) for _ in range(20)))
    network.now = 29.0
    await origin.connect(CONNECTION)
    assert network.lookups == 1
    network.addresses, network.now = ("c",), 31.0
    network.asked.clear()
    await origin.connect(CONNECTION)
    assert (network.lookups, network.asked) == (2, ["c"])


async def test_an_address_that_refuses_is_skipped(network: Network) -> None:
    """By the connection that finds it out and by all others, until the addresses are looked up again."""
    origin = build_origin()
    network.refusing = {"a"}
    for _ in range(10):
        await origin.connect(CONNECTION)
    assert Counter(network.asked) == {"a": 1, "b": 10}

    network.refusing, network.now = set(), 31.0
    network.asked.clear()
    for _ in range(10):
        await origin.connect(CONNECTION)
    assert Counter(network.asked) == {"a": 5, "b": 5}


async def test_when_all_refuse_all_are_tried(network: Network) -> None:
    """Each time: one of them may be back."""
    origin = build_origin()
    network.refusing = {"a", "b"}
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError, match="refused by"):
            await origin.connect(CONNECTION)
    assert Counter(network.asked) == {"a": 3, "b": 3}
    network.refusing = {"a"}
    await origin.connect(CONNECTION)


async def test_an_address_that_was_skipped_is_tried_before_giving_up(network: Network) -> None:
    """A connection is refused only when nobody takes it."""
    origin = build_origin()
    network.refusing = {"a"}
    for _ in range(2):
        await origin.connect(CONNECTION)
    network.refusing = {"b"}
    await origin.connect(CONNECTION)


async def test_a_name_that_nobody_knows(network: Network) -> None:
    """Is asked for again by the next: it may be known then."""
    origin = build_origin()
    addresses, network.addresses = network.addresses, ()
    with pytest.raises(socket.gaierror):
        await origin.connect(CONNECTION)
    network.addresses = addresses
    await origin.connect(CONNECTION)


def test_the_connection_that_was_used_last_is_used_first() -> None:
    """The server has had the least time to close it; one that is closed is passed over."""
    origin = build_origin()
    connections: list[Any] = [Idle(usable) for usable in (True, False, True, False)]
    for connection in connections:
        origin.idle[connection] = None
    assert origin.pop_idle() is connections[2]
    assert origin.pop_idle() is connections[0]
    assert origin.pop_idle() is None

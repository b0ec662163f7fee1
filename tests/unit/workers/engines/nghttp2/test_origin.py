"""Which connection takes the next request."""

from types import SimpleNamespace
from typing import Any

from yarl import URL

from oku_workers.engines.nghttp2.connection import Connection
from oku_workers.engines.nghttp2.origin import Origin


def build(count: int) -> tuple[Origin, list[Connection]]:
    """An origin, and so many connections to it that have room."""
    origin = Origin(URL("http://name.example:80"), None)
    owner: Any = SimpleNamespace(feed=None)
    connections = [Connection(owner, origin, 10) for _ in range(count)]
    origin.roomy.update(dict.fromkeys(connections))
    return origin, connections


def test_without_room_there_is_none() -> None:
    """A connection that is not made yet has none either."""
    origin, [connection] = build(1)
    assert origin.find_roomy() is connection
    origin.roomy.clear()
    origin.connections.add(connection)
    origin.connecting.add(connection)
    assert origin.find_roomy() is None


def test_connections_take_their_turns() -> None:
    """The one that has taken a request least recently is the first; who takes one goes to the end."""
    origin, connections = build(3)
    taken = []
    for _ in range(6):
        found = origin.find_roomy()
        assert found is not None
        taken.append(found)
        del origin.roomy[found]
        origin.roomy[found] = None
    assert taken == [*connections, *connections]


def test_a_connection_that_has_refused_a_request_is_avoided() -> None:
    """If there is another one: else it gets the request again."""
    origin, [first, second] = build(2)
    assert origin.find_roomy(first) is second
    assert origin.find_roomy(second) is first
    del origin.roomy[second]
    assert origin.find_roomy(first) is first


def test_it_is_called_by_its_url() -> None:
    """That is how the log speaks of it."""
    assert Origin(URL("http://name.example:8080"), None).name == "http://name.example:8080"

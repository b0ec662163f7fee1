"""Which connection takes the next request."""

from typing import Any

import pytest
from yarl import URL

from oku_core.http_client.connector import Way
from oku_workers.engines.nghttp2.route import Origin


def build(count: int) -> tuple[Any, list[Any]]:
    """An origin, and so many connections to it that have room."""
    origin = Origin(URL("http://name.example:80"), Way())
    # Told apart by what they are, as connections are.
    connections: list[Any] = [type("Roomy", (), {"has_room": True})() for _ in range(count)]
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
    # Connections take their turns.
    origin, connections = build(3)
    taken = []
    for _ in range(6):
        found = origin.find_roomy()
        assert found is not None
        taken.append(found)
        del origin.roomy[found]
        origin.roomy[found] = None
    assert taken == [*connections, *connections]
    # A connection that has refused a request is avoided.
    origin, [first, second] = build(2)
    assert origin.find_roomy(first) is second
    assert origin.find_roomy(second) is first
    del origin.roomy[second]
    assert origin.find_roomy(first) is first
    # A connection whose server has hung up is passed over. The event loop says so only later.
    origin, [first, second] = build(2)
    first.has_room = False
    assert origin.find_roomy() is second


def test_the_log_has_the_lowest_limit_once(caplog: pytest.LogCaptureFixture) -> None:
    """Servers behind one name may differ, and change their minds."""
    origin = Origin(URL("http://name.example:8080"), Way())
    for limit in (10, 7, 7, 9, 3):
        origin.record_limit(limit, 10)
    assert origin.most_streams == 3
    assert [record.getMessage() for record in caplog.records] == [
        f"http://name.example:8080 allows {limit} streams at a time on a connection, not 10"
        for limit in (7, 3)
    ]

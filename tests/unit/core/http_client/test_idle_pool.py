"""Which idle connection takes the next request."""

from yarl import URL

from oku_workers.engines.httptools.origin import IdleConnection, Origin


class Idle(IdleConnection):
    """A connection without a request."""

    is_usable = False


def test_the_connection_that_was_used_last_is_used_first() -> None:
    """The server has had the least time to close it; one that is closed is passed over."""
    origin: Origin[Idle] = Origin(URL("http://name.example:80"), None)
    connections = [Idle() for _ in range(4)]
    connections[0].is_usable = connections[2].is_usable = True
    for connection in connections:
        origin.idle[connection] = None
    assert origin.pop_idle() is connections[2]
    assert origin.pop_idle() is connections[0]
    assert origin.pop_idle() is None

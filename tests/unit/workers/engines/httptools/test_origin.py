"""Which idle connection takes the next request."""

from dataclasses import dataclass
from typing import Any

from yarl import URL

from oku_workers.engines.httptools.origin import Origin


@dataclass(eq=False)
class Idle:
    """A connection without a request."""

    is_usable: bool


def test_the_connection_that_was_used_last_is_used_first() -> None:
    """The server has had the least time to close it; one that is closed is passed over."""
    origin = Origin(URL("http://name.example:80"), None)
    connections: list[Any] = [Idle(usable) for usable in (True, False, True, False)]
    for connection in connections:
        origin.idle[connection] = None
    assert origin.pop_idle() is connections[2]
    assert origin.pop_idle() is connections[0]
    assert origin.pop_idle() is None

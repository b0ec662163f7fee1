"""Where the connections of the nghttp2 engine go: which of them have room, and what waits for room."""

import ssl
from collections import deque
from typing import TYPE_CHECKING

from yarl import URL

from oku_workers.engines.connector import Connector

if TYPE_CHECKING:
    from oku_workers.engines.nghttp2.connection import Connection
    from oku_workers.engines.nghttp2.stream import Stream


class Origin(Connector):
    """One scheme, host and port.

    Args:
        url: scheme, host and port.
        tls: how to speak TLS; None to speak none.
        local_address: what to connect from; the system chooses unless given.

    Attributes:
        connections: those that take streams, or will once they are made.
        connecting: those of them that are not made yet.
        roomy: those of them that can take another stream now; the one that did so last at the end.
        waiting: requests that were taken and have no stream: their connection is not made yet, or the server
            has refused them.
        most_streams: how many streams a connection may have, as far as is known.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, local_address: str | None = None) -> None:
        super().__init__(url, tls, local_address)
        self.name = str(url)
        self.connections: set[Connection] = set()
        self.connecting: set[Connection] = set()
        self.roomy: dict[Connection, None] = {}
        self.waiting: deque[Stream] = deque()
        self.most_streams = 0

    def find_roomy(self, avoided: object = None) -> "Connection | None":
        """A connection that can take another stream; another one than `avoided` if there is one."""
        found = None
        for connection in self.roomy:
            found = connection
            if connection is not avoided:
                break
        return found

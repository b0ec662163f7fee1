"""Where the connections of the nghttp2 engine go: which of them have room, and what waits for room."""

import logging
import ssl
from collections import deque
from typing import TYPE_CHECKING

from yarl import URL

from oku_workers.engines.http.connector import Connector

if TYPE_CHECKING:
    from oku_workers.engines.nghttp2.connection import Connection
    from oku_workers.engines.nghttp2.stream import Stream


_log = logging.getLogger(__name__)


class Origin(Connector):
    """One scheme, host and port.

    Args:
        url: scheme, host and port.
        tls: how to speak TLS; None to speak none.
        local_address: what to connect from; the system chooses unless given.

    Attributes:
        is_slow: whether connections take long to be made.
        connections: those that take streams, or will once they are made.
        connecting: those of them that are not made yet.
        roomy: those of them that can take another stream now; the one that did so last at the end.
        waiting: requests that were taken and have no stream: their connection is not made yet, or the server
            has refused them.
        most_streams: how many streams a connection may have, as one of them was told last; 0 before that.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, local_address: str | None = None) -> None:
        super().__init__(url, tls, local_address)
        self._name = str(url)
        self.connections: set[Connection] = set()
        self.connecting: set[Connection] = set()
        self.roomy: dict[Connection, None] = {}
        self.waiting: deque[Stream] = deque()
        self.most_streams = 0
        self.is_slow = False
        self._fewest_streams: int | None = None
        """The lowest limit that the log has."""

    def note_limit(self, most_streams: int, wanted: int) -> None:
        """A connection was told how many streams it may have; the log has it if it is fewer than ever.

        Servers behind one name may differ, and each may change its mind at any time.

        Args:
            most_streams: how many it may have.
            wanted: how many it would have.
        """
        self.most_streams = most_streams
        if most_streams < (wanted if self._fewest_streams is None else self._fewest_streams):
            self._fewest_streams = most_streams
            _log.warning(
                "%s allows %d streams at a time on a connection, not %d", self._name, most_streams, wanted
            )

    def can_wait(self, streams: int) -> bool:
        """Whether another request may wait for the connections that are being made.

        Args:
            streams: how many each may have, as long as the server has not said how many that are.
        """
        return self.is_slow and len(self.waiting) < len(self.connecting) * (self.most_streams or streams)

    def find_roomy(self, avoided: object = None) -> "Connection | None":
        """A connection that can take another stream; another one than `avoided` if there is one."""
        found = None
        for connection in self.roomy:
            if not connection.has_room:  # its server has just hung up, and the event loop will say so
                continue
            found = connection
            if connection is not avoided:
                break
        return found

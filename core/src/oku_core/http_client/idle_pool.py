"""The idle connections to one scheme, host and port; engines and scenarios share it."""

from typing import Generic, Protocol, TypeVar

from yarl import URL

from oku_core.http_client.connector import Connector, Way

KEEPALIVE_S = 15.0
"""Idle connections are closed after this, before most servers close them."""
_KEEPALIVE_NS = int(KEEPALIVE_S * 1e9)


class IdleConnection(Protocol):
    """A connection, as far as its pool knows it."""

    @property
    def is_usable(self) -> bool:
        """Whether it can take a request."""
        ...

    def close(self) -> None:
        """End it at once."""
        ...


AnyConnection = TypeVar("AnyConnection", bound=IdleConnection)


class IdlePool(Generic[AnyConnection]):
    """Connections without a request; times are nanoseconds of the monotonic clock."""

    __slots__ = ("_is_closed", "_rested_ns")

    def __init__(self) -> None:
        self._rested_ns: dict[AnyConnection, int] = {}
        """When each became idle, the one that was used last at the end."""
        self._is_closed = False

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rested_ns)

    def rest(self, connection: AnyConnection, now_ns: int) -> None:
        """Keep a connection for another request."""
        if self._is_closed:
            connection.close()
        else:
            self._rested_ns[connection] = now_ns

    def pop(self, now_ns: int) -> AnyConnection | None:
        """The connection that was used last; the server has had the least time to close it."""
        while self._rested_ns:
            connection, rested_ns = self._rested_ns.popitem()
            if connection.is_usable and now_ns - rested_ns < _KEEPALIVE_NS:
                return connection
            connection.close()
        return None

    def discard(self, connection: AnyConnection) -> None:
        """Forget a connection that is of no further use."""
        self._rested_ns.pop(connection, None)

    def close_oldest(self) -> None:
        """Make room for a connection elsewhere."""
        if self._rested_ns:
            oldest = next(iter(self._rested_ns))
            del self._rested_ns[oldest]
            oldest.close()

    def close_expired(self, now_ns: int) -> None:
        """Close the connections that have been idle for `KEEPALIVE_S`."""
        expired = []
        for connection, rested_ns in self._rested_ns.items():
            if now_ns - rested_ns < _KEEPALIVE_NS:
                break
            expired.append(connection)
        for connection in expired:
            del self._rested_ns[connection]
            connection.close()

    def close(self) -> None:
        """Close all connections, and from now on each that becomes idle."""
        self._is_closed = True
        while self._rested_ns:
            self._rested_ns.popitem()[0].close()


class PooledConnector(Connector, Generic[AnyConnection]):
    """Connects to one scheme, host and port, and keeps the idle connections.

    Attributes:
        idle: the connections that wait for a request.
    """

    def __init__(self, origin: URL, way: Way) -> None:
        super().__init__(origin, way)
        self.idle: IdlePool[AnyConnection] = IdlePool()

    def retire(self) -> None:
        """Close idle connections, and from now on each that becomes idle."""
        self.idle.close()

    def close(self) -> None:
        """Close idle connections, and give up a lookup that is under way."""
        super().close()
        self.idle.close()

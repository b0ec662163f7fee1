"""The open connections of the API: limits on their number and on their waiting times.

A caller without a token can still connect. A connection is therefore waiting (for a request, or the rest of
its head) or busy (with a request, until its answer is written). Waiting has an end, and when there are too
many connections the one that has waited longest makes room for a new one: a caller that sends its request at
once always gets through. A busy connection is never closed to make room.
"""

import enum
import ipaddress
from dataclasses import dataclass
from typing import Protocol

from oku_core.process.clock import Clock

_IPV6_NETWORK_BITS = 64
"""The network of one customer (RFC 6177)."""


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Limits: number of connections, waiting times, and the size of a request head.

    Args:
        most: the total number. Each takes one of the 1,024 open files that systems allow, and about 15 kB.
        most_per_address: the number per address. Behind a port-forward or a proxy, all callers share one: a
            follower of a run takes one connection, a command one or two for a moment.
        head_s: how long a request's head may take, from the connection or from its first byte.
        idle_s: between two requests; longer than clients and proxies keep a connection (15 s to 60 s).
        stalled_s: how long a caller may leave its answer unread before it is dropped.
        closing_s: how long a closing connection may take to read its last response.
        longest_head_bytes: the most bytes of an incomplete head.
    """

    most: int = 192
    most_per_address: int = 96
    head_s: float = 10.0
    idle_s: float = 75.0
    stalled_s: float = 60.0
    closing_s: float = 10.0
    longest_head_bytes: int = 32_768


class ConnectionPhase(enum.Enum):
    """The state of a connection."""

    HEAD = enum.auto()
    """It has not sent a complete head yet."""
    BUSY = enum.auto()
    """Its request is being answered."""
    IDLE = enum.auto()
    """It was answered and may send another request."""
    CLOSING = enum.auto()
    """It was answered and will be closed."""


class DropReason(enum.StrEnum):
    """Why a connection is closed early."""

    CROWDED = "there are too many connections, and it had waited longest"
    OVERDUE = "it sent or read nothing for too long"
    LONG_HEAD = "the head of its request is too long"


class ClientConnection(Protocol):
    """One connection of a client."""

    @property
    def origin(self) -> str:
        """The client that the connection is counted against."""

    def drop(self, reason: DropReason) -> None:
        """Close it at once."""


@dataclass
class _Row:
    phase: ConnectionPhase
    since: float
    head_bytes: int = 0
    stalled_since: float | None = None


class ConnectionTable:
    """The open connections; the clock is monotonic."""

    def __init__(self, limits: ConnectionLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._rows: dict[ClientConnection, _Row] = {}
        self._waiting: dict[ClientConnection, None] = {}
        """In the order in which they began to wait."""
        self._count_by_origin: dict[str, int] = {}

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._rows)

    def admit(self, connection: ClientConnection) -> bool:
        """Add a new connection, in place of a waiting one if the table is full; False if none is waiting."""
        origin = connection.origin
        if self._count_by_origin.get(origin, 0) >= self._limits.most_per_address:
            is_admitted = self._make_room(origin)
        else:
            is_admitted = len(self._rows) < self._limits.most or self._make_room(None)
        if is_admitted:
            self._rows[connection] = _Row(ConnectionPhase.HEAD, self._clock())
            self._waiting[connection] = None
            self._count_by_origin[origin] = self._count_by_origin.get(origin, 0) + 1
        return is_admitted

    def remove(self, connection: ClientConnection) -> None:
        """Remove a connection that has ended or was never admitted."""
        if self._rows.pop(connection, None) is None:
            return
        self._waiting.pop(connection, None)
        origin = connection.origin
        self._count_by_origin[origin] -= 1
        if not self._count_by_origin[origin]:
            del self._count_by_origin[origin]

    def enter(self, connection: ClientConnection, phase: ConnectionPhase) -> None:
        """Change the phase of a connection."""
        row = self._rows.get(connection)
        if row is None:
            return
        row.phase, row.since, row.head_bytes = phase, self._clock(), 0
        self._waiting.pop(connection, None)
        if phase is not ConnectionPhase.BUSY:
            self._waiting[connection] = None

    def record_partial_head(self, connection: ClientConnection, size: int) -> None:
        """Record bytes of an incomplete head; closes the connection if the head is too long."""
        row = self._rows.get(connection)
        if row is None or row.phase in (ConnectionPhase.BUSY, ConnectionPhase.CLOSING):
            return
        if row.phase is ConnectionPhase.IDLE:
            self.enter(connection, ConnectionPhase.HEAD)
        row.head_bytes += size
        if row.head_bytes > self._limits.longest_head_bytes:
            self._drop(connection, DropReason.LONG_HEAD)

    def record_stall(self, connection: ClientConnection, *, is_stalled: bool) -> None:
        """Record that the client has stopped or resumed reading."""
        if row := self._rows.get(connection):
            row.stalled_since = self._clock() if is_stalled else None

    def drop_overdue(self) -> None:
        """Close the connections that have waited too long; call it about every second."""
        now = self._clock()
        for connection, row in list(self._rows.items()):
            if self._is_overdue(row, now):
                self._drop(connection, DropReason.OVERDUE)

    def _is_overdue(self, row: _Row, now: float) -> bool:
        limits = self._limits
        if row.stalled_since is not None and now - row.stalled_since >= limits.stalled_s:
            return True
        if row.phase is ConnectionPhase.BUSY:
            return False
        patience_s = {
            ConnectionPhase.HEAD: limits.head_s,
            ConnectionPhase.IDLE: limits.idle_s,
            ConnectionPhase.CLOSING: limits.closing_s,
        }[row.phase]
        return now - row.since >= patience_s

    def _make_room(self, origin: str | None) -> bool:
        """Close the connection that has waited longest, of one origin or of all."""
        waiting = (other for other in self._waiting if origin is None or other.origin == origin)
        longest = next(waiting, None)
        if longest is None:
            return False
        self._drop(longest, DropReason.CROWDED)
        return True

    def _drop(self, connection: ClientConnection, reason: DropReason) -> None:
        self.remove(connection)
        connection.drop(reason)


def find_client(host: str) -> str:
    """The client behind an address: itself, its /64 network for IPv6, or the IPv4 address that it maps."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))

"""Where the connections of the httptools engine go, and which of them are idle there."""

import asyncio
import ssl
from abc import abstractmethod
from time import monotonic_ns
from typing import Generic, TypeVar

from yarl import URL

from oku_core.http_client.addresses import Addresses


class OriginConnection(asyncio.Protocol):
    """A connection, as far as its origin knows it.

    Attributes:
        begun_ns: when its origin began to connect, or with TLS to speak that.
        connect_us: with TLS, how long TCP took before; else None.
    """

    __slots__ = ("begun_ns", "connect_us")

    def __init__(self) -> None:
        self.begun_ns = 0
        self.connect_us: int | None = None

    @property
    @abstractmethod
    def is_usable(self) -> bool:
        """Whether it can take a request."""


AnyConnection = TypeVar("AnyConnection", bound=OriginConnection)


class Origin(Generic[AnyConnection]):
    """One scheme, host and port.

    Args:
        url: scheme, host and port.
        tls: how to speak TLS; None to speak none.
        local_address: what to connect from; the system chooses unless given.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, local_address: str | None = None) -> None:
        self.idle: dict[AnyConnection, None] = {}
        """Connections that wait for a request, the one that was used last at the end."""
        self._host = url.raw_host or ""
        self._tls = tls
        self._port = url.port or 0
        self._addresses = Addresses(self._host, self._port, local_address)

    def pop_idle(self) -> AnyConnection | None:
        """A connection that can take a request, if there is one."""
        while self.idle:
            connection, _ = self.idle.popitem()
            if connection.is_usable:
                return connection
        return None

    async def connect(self, connection: AnyConnection) -> None:
        """Make a connection to one of the addresses.

        Raises:
            OSError: none of them can be reached, or TLS cannot be agreed on.
        """
        loop = asyncio.get_running_loop()
        lone = await self._addresses.find_lone()
        connection.begun_ns = monotonic_ns()
        if self._tls is None and lone is not None:
            await loop.create_connection(lambda: connection, lone, self._port)
            return
        lent = await self._addresses.connect()
        if self._tls is None:
            await loop.create_connection(lambda: connection, sock=lent)
            return
        now_ns = monotonic_ns()
        connection.connect_us = (now_ns - connection.begun_ns) // 1000
        connection.begun_ns = now_ns
        await loop.create_connection(lambda: connection, sock=lent, ssl=self._tls, server_hostname=self._host)

    def close(self) -> None:
        """Give up a lookup that is under way; the engine closes the connections."""
        self._addresses.close()

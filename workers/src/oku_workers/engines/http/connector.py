"""Makes connections to one scheme, host and port; the engines that read from sockets themselves share it."""

import asyncio
import ssl
from time import monotonic_ns

from yarl import URL

from oku_core.http_client.addresses import Addresses
from oku_core.http_client.tls import server_name

NO_SLOTS: tuple[str, ...] = ()
"""Of a base whose heirs have room for its attributes: they may have another base with slots."""


class OriginConnection(asyncio.Protocol):
    """A connection, as far as it is known to what makes it.

    Attributes:
        begun_ns: when its `Connector` began to connect, or with TLS to speak that.
        connect_us: with TLS, how long TCP took before; else None.
    """

    __slots__ = NO_SLOTS

    begun_ns: int
    connect_us: int | None

    def __init__(self) -> None:
        self.begun_ns = 0
        self.connect_us = None

    def measure(self) -> tuple[int, int | None]:
        """How long TCP and TLS have taken until now, in µs; None for TLS if it is not spoken."""
        took_us = (monotonic_ns() - self.begun_ns) // 1000
        return (took_us, None) if self.connect_us is None else (self.connect_us, took_us)


class Connector:
    """Connects to one scheme, host and port.

    Args:
        url: scheme, host and port.
        tls: how to speak TLS; None to speak none.
        local_address: what to connect from; the system chooses unless given.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, local_address: str | None = None) -> None:
        self._host = url.raw_host or ""
        self._tls = tls
        self._port = url.port or 0
        self._addresses = Addresses(self._host, self._port, local_address)

    async def connect(self, connection: OriginConnection) -> None:
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
        name = server_name(self._host)
        await loop.create_connection(lambda: connection, sock=lent, ssl=self._tls, server_hostname=name)

    def close(self) -> None:
        """Give up a lookup that is under way; the engine closes the connections."""
        self._addresses.close()

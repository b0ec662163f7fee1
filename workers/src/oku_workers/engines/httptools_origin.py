"""Where connections of the httptools engine go: the addresses of a host, in turn, and what is idle there."""

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from yarl import URL

from oku_workers.engines.sockets import build_socket

if TYPE_CHECKING:
    from oku_workers.engines.httptools_connection import Connection

_RESOLVED_FOR_S = 30.0
"""Addresses are looked up again after this: those of a Service change as its pods come and go."""


class Origin:
    """See the module.

    Args:
        url: scheme, host and port.
        tls: how to speak TLS; None to speak none.
        local_address: what to connect from; the system chooses unless given.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, local_address: str | None = None) -> None:
        self.idle: dict[Connection, None] = {}
        """Connections that wait for a request, the one that was used last at the end."""
        self._host = url.raw_host or ""
        self._port = url.port or 0
        self._tls = tls
        self._local_address = local_address
        self._addresses: list[str] = []
        self._failed: set[str] = set()
        self._resolved_at = 0.0
        self._resolving = asyncio.Lock()
        self._turn = 0

    def pop_idle(self) -> "Connection | None":
        """A connection that can take a request, if there is one."""
        while self.idle:
            connection, _ = self.idle.popitem()
            if connection.is_usable:
                return connection
        return None

    async def connect(self, connection: "Connection") -> None:
        """Make a connection to the next address, or to any that can be reached.

        Raises:
            OSError: none of them can be.
        """
        addresses = await self._resolve()
        reachable = [address for address in addresses if address not in self._failed] or addresses
        others = [address for address in addresses if address not in reachable]
        self._turn += 1
        first = self._turn % len(reachable)
        errors: list[OSError] = []
        for address in (*reachable[first:], *reachable[:first], *others):
            try:
                await self._connect_to(address, connection)
            except OSError as error:
                errors.append(error)
                self._failed.add(address)
            else:
                self._failed.discard(address)
                return
        raise errors[0]

    async def _connect_to(self, address: str, connection: "Connection") -> None:
        loop = asyncio.get_running_loop()
        name = self._host if self._tls is not None else None
        if self._local_address is None:
            await loop.create_connection(
                lambda: connection, address, self._port, ssl=self._tls, server_hostname=name
            )
            return
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        lent = build_socket(family, self._local_address)
        try:
            await loop.sock_connect(lent, (address, self._port))
        except BaseException:
            lent.close()
            raise
        await loop.create_connection(lambda: connection, sock=lent, ssl=self._tls, server_hostname=name)

    async def _resolve(self) -> list[str]:
        loop = asyncio.get_running_loop()
        async with self._resolving:
            if not self._addresses or loop.time() - self._resolved_at > _RESOLVED_FOR_S:
                found = await loop.getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
                )
                self._addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
                self._failed.clear()
                self._resolved_at = loop.time()
        return self._addresses

"""Where connections go: to one scheme, host and port, directly or through a proxy."""

import asyncio
import base64
import ssl
from dataclasses import dataclass
from time import monotonic_ns
from typing import Protocol

from yarl import URL

from oku.client.outbound_connection import CONNECT_ERROR, OutboundConnection, TransportError
from oku_core.http_client.addresses import Addresses
from oku_core.http_client.client_rules import KEEPALIVE_S
from oku_core.http_client.error_reason import explain_proxy_refusal
from oku_core.http_client.tls import server_name

_KEEPALIVE_NS = int(KEEPALIVE_S * 1e9)


class TlsSettings(Protocol):
    """How TLS is spoken."""

    def build(self) -> ssl.SSLContext:
        """Build the settings, or give those that were built before."""
        ...


@dataclass(frozen=True)
class Way:
    """How connections are made, wherever they go.

    Attributes:
        tls: how TLS is spoken.
        proxy: the URL of the proxy; None without one.
        local_address: what to connect from; the system chooses unless given.
    """

    tls: TlsSettings
    proxy: URL | None = None
    local_address: str | None = None


class ClientOrigin:
    """One scheme, host and port.

    Args:
        url: a URL there.
        way: how connections are made.

    Attributes:
        host: host and port as the header `Host` has them.
        common: the headers that are the same for all requests there, as bytes; None until they are known.
        before_path: stands before the path in a request line; only a proxy needs something there.
        proxy_authorization: of requests that a proxy passes on; empty without.
    """

    def __init__(self, url: URL, way: Way) -> None:
        self.host = url.host_port_subcomponent or ""
        self.common: bytes | None = None
        self._way = way
        self._name, self._port = url.raw_host or "", url.port or 0
        self._is_https = url.scheme == "https"
        self._idle: list[OutboundConnection] = []
        self._is_retired = False
        proxy = way.proxy
        authorization = "" if proxy is None else build_basic(proxy.user, proxy.password)
        is_passed_on = proxy is not None and not self._is_https
        self.before_path = f"http://{self.host}" if is_passed_on else ""
        self.proxy_authorization = authorization if is_passed_on else ""
        self._tunnel_authorization = authorization
        first = url if proxy is None else proxy
        self._addresses = Addresses(first.raw_host or "", first.port or 0, way.local_address)

    def list_proxy_headers(self) -> list[tuple[str, str]]:
        """The headers for a proxy that forwards requests."""
        authorization = self.proxy_authorization
        return [("Proxy-Authorization", authorization)] if authorization else []

    def pop_idle(self) -> OutboundConnection | None:
        """A connection that can take a request, the one that was used last; None if there is none."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.is_usable and monotonic_ns() - connection.rested_at_ns < _KEEPALIVE_NS:
                return connection
            connection.close()
        return None

    def rest(self, connection: OutboundConnection) -> None:
        """Keep a connection for another request."""
        if self._is_retired:
            connection.close()
            return
        connection.rested_at_ns = monotonic_ns()
        self._idle.append(connection)

    def close_rested(self) -> None:
        """Close the connections that have been idle for long."""
        oldest_ns = monotonic_ns() - _KEEPALIVE_NS
        while self._idle and self._idle[0].rested_at_ns < oldest_ns:
            self._idle.pop(0).close()

    async def connect(self, deadline_ns: int) -> OutboundConnection:
        """Make a connection.

        Args:
            deadline_ns: until when, by the monotonic clock.

        Raises:
            OSError: connecting or the TLS handshake has failed.
            TimeoutError: it takes too long.
            TransportError: the proxy does not lead there.
        """
        async with asyncio.timeout(max(0.0, (deadline_ns - monotonic_ns()) / 1e9)):
            return await self._connect(deadline_ns)

    def retire(self) -> None:
        """Keep no connections from now on; the requests that are under way go on."""
        self._is_retired = True
        self._close_idle()

    def close(self) -> None:
        """Close idle connections, and give up a lookup that is under way."""
        self._addresses.close()
        self._close_idle()

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _connect(self, deadline_ns: int) -> OutboundConnection:
        loop = asyncio.get_running_loop()
        if self._is_https and self._way.proxy is not None:
            return await self._connect_through_tunnel(deadline_ns)
        lent = await self._addresses.connect()
        if self._is_https:
            tls, name = self._way.tls.build(), server_name(self._name)
            _, connection = await loop.create_connection(
                OutboundConnection, sock=lent, ssl=tls, server_hostname=name
            )
        else:
            _, connection = await loop.create_connection(OutboundConnection, sock=lent)
        return connection

    async def _connect_through_tunnel(self, deadline_ns: int) -> OutboundConnection:
        """Have the proxy pass bytes on, and speak TLS with who is behind it (RFC 9110, section 9.3.6)."""
        loop = asyncio.get_running_loop()
        transport, tunnel = await loop.create_connection(_Tunnel, sock=await self._addresses.connect())
        try:
            place = f"{self._name}:{self._port}"
            head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
            if self._tunnel_authorization:
                head += f"Proxy-Authorization: {self._tunnel_authorization}\r\n"
            status = await tunnel.open(f"{head}\r\n".encode())
            if status // 100 != 2:  # a class of statuses
                raise TransportError(CONNECT_ERROR, explain_proxy_refusal(status))
            connection = OutboundConnection()
            name = server_name(self._name)
            over_tls = await loop.start_tls(
                transport, connection, self._way.tls.build(), server_hostname=name
            )
        except BaseException:
            transport.abort()
            raise
        if over_tls is None:
            raise ConnectionResetError
        connection.deadline_ns = deadline_ns
        connection.connection_made(over_tls)
        return connection


class _Tunnel(OutboundConnection):
    """A connection to a proxy, until it passes bytes on."""

    async def open(self, request: bytes) -> int:
        """Ask for it; returns the status."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # What follows the head of an answer to CONNECT is not its body.
        self.ask(request, waiter, has_body=False, kept_bytes=0)
        try:
            await waiter
        except TransportError as error:
            raise TransportError(CONNECT_ERROR, error.cause) from None
        return self.reader.status


def build_basic(user: str | bytes | None, password: str | bytes | None) -> str:
    """The value of an `Authorization` header with user and password; empty without both."""
    if user is None and password is None:
        return ""
    parts = [part if isinstance(part, bytes) else (part or "").encode() for part in (user, password)]
    return f"Basic {base64.b64encode(b':'.join(parts)).decode()}"

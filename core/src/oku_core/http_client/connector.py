"""Makes connections to one scheme, host and port, directly or through a proxy, for engines and scenarios.

A proxy passes plain requests on, and makes a tunnel for TLS (RFC 9110, section 9.3.6). What goes wrong before
a connection is made is an `OSError`, and a `ProxyError` where the proxy is to blame.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic_ns
from typing import Generic, TypeVar

from yarl import URL

from oku_core.http_client.addresses import Addresses, LentSocket
from oku_core.http_client.request_head import build_basic
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader
from oku_core.http_client.tls import server_name

NO_SLOTS: tuple[str, ...] = ()
"""Of a base whose heirs have room for its attributes: they may have another base with slots."""
MOST_ORIGINS = 100
"""How many origins a client remembers: redirections may lead to ever new ones."""
_SUCCESS = range(200, 300)


@dataclass(frozen=True)
class Way:
    """How connections are made, wherever they go.

    Attributes:
        tls: how to speak TLS; only connections to https need it.
        proxy: the URL of the proxy; None without one.
        local_address: what to connect from; the system chooses unless given.
    """

    tls: ssl.SSLContext | None = None
    proxy: URL | None = None
    local_address: str | None = None


class ProxyError(OSError):
    """A proxy cannot be reached, or makes no tunnel.

    Attributes:
        cause: the status that it has answered with, or what has gone wrong; None if it has hung up.
    """

    def __init__(self, cause: int | BaseException | None = None) -> None:
        super().__init__(f"proxy: {cause or 'hung up'}")
        self.cause = cause


class OriginConnection(asyncio.Protocol):
    """A connection, as far as it is known to what makes it.

    Attributes:
        begun_ns: when its `Connector` began to connect, or with TLS to speak that.
        connect_us: with TLS, how long TCP and the tunnel of a proxy took before; else None.
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
        origin: scheme, host and port.
        way: how connections are made.

    Attributes:
        is_forwarded: whether connections end at a proxy that forwards plain requests.
    """

    def __init__(self, origin: URL, way: Way) -> None:
        name, proxy = origin.raw_host or "", way.proxy
        self._server_name = server_name(name)
        self._tls = way.tls if origin.scheme == "https" else None
        self._has_proxy = proxy is not None
        self.is_forwarded = self._has_proxy and origin.scheme != "https"
        self._tunnel_request = b""
        if proxy is not None and self._tls is not None:
            self._tunnel_request = _build_tunnel_request(f"{origin.host_subcomponent}:{origin.port}", proxy)
        first = proxy or origin
        self._port = first.port or 0
        self._addresses = Addresses(first.raw_host or "", self._port, way.local_address)

    async def connect(self, connection: OriginConnection) -> None:
        """Make a connection, TLS and tunnel included.

        Raises:
            ProxyError: the proxy cannot be reached, or makes no tunnel.
            OSError: no address can be reached, or TLS cannot be agreed on.
        """
        loop = asyncio.get_running_loop()
        try:
            lone = await self._addresses.find_lone()
            connection.begun_ns = monotonic_ns()
            if self._tls is None and lone is not None:
                await loop.create_connection(lambda: connection, lone, self._port)
                return
            lent = await self._addresses.connect()
            if self._tls is None:
                await loop.create_connection(lambda: connection, sock=lent)
                return
            tunnel = await _open_tunnel(lent, self._tunnel_request) if self._tunnel_request else None
        except OSError as error:
            if self._has_proxy and not isinstance(error, ProxyError):
                raise ProxyError(error) from None
            raise
        now_ns = monotonic_ns()
        connection.connect_us = (now_ns - connection.begun_ns) // 1000
        connection.begun_ns = now_ns
        if tunnel is None:
            await loop.create_connection(
                lambda: connection, sock=lent, ssl=self._tls, server_hostname=self._server_name
            )
            return
        try:
            transport = await loop.start_tls(tunnel, connection, self._tls, server_hostname=self._server_name)
        except BaseException:
            tunnel.abort()
            raise
        if transport is None:
            raise ConnectionResetError
        connection.connection_made(transport)

    def retire(self) -> None:
        """Take no new requests; those under way go on, and may wait for a lookup."""

    def close(self) -> None:
        """Give up a lookup that is under way; connections are closed by those who have them."""
        self._addresses.close()


AnyConnector = TypeVar("AnyConnector", bound=Connector)
BuildConnector = Callable[[URL], AnyConnector]
"""Makes the connector of an origin."""


class OriginTable(Generic[AnyConnector]):
    """The connectors of a client by scheme, host and port, at most `MOST_ORIGINS`.

    Args:
        build: makes connectors.
    """

    def __init__(self, build: BuildConnector[AnyConnector]) -> None:
        self._build = build
        self._connectors: dict[tuple[str, str | None, int | None], AnyConnector] = {}

    def __iter__(self) -> Iterator[AnyConnector]:
        """The connectors, the oldest first."""
        return iter(self._connectors.values())

    def find(self, url: URL) -> AnyConnector:
        """The connector of the origin of a URL; the oldest one may have to make room for it."""
        key = url.scheme, url.raw_host, url.port
        if (connector := self._connectors.get(key)) is None:
            if len(self._connectors) >= MOST_ORIGINS:
                self._connectors.pop(next(iter(self._connectors))).retire()
            connector = self._connectors[key] = self._build(url.origin())
        return connector

    def close(self) -> None:
        """Close all connectors."""
        for connector in self:
            connector.close()


class _Tunnel(asyncio.Protocol):
    """A connection to a proxy, until this passes bytes on.

    Attributes:
        status: of its answer, once that has come.
    """

    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        # What follows the head of an answer to CONNECT is not its body.
        self._reader = ResponseReader(has_bodies=False)

    def data_received(self, data: bytes) -> None:
        """A piece of the answer has come."""
        if self.status.done():
            return
        try:
            self._reader.feed(data)
        except MalformedResponseError as error:
            self.status.set_exception(ProxyError(error.without_response()))
            return
        if self._reader.is_complete:
            self.status.set_result(self._reader.status)

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy has hung up."""
        self._reader.end()
        if not self.status.done():
            self.status.set_exception(ProxyError(exc))


async def _open_tunnel(lent: LentSocket, request: bytes) -> asyncio.Transport:
    """Have a proxy pass bytes on.

    Raises:
        ProxyError: it does not.
    """
    transport, tunnel = await asyncio.get_running_loop().create_connection(_Tunnel, sock=lent)
    try:
        transport.write(request)
        status = await tunnel.status
        if status not in _SUCCESS:
            raise ProxyError(status)
    except BaseException:
        transport.abort()
        raise
    return transport


def _build_tunnel_request(place: str, proxy: URL) -> bytes:
    head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
    if authorization := build_basic(proxy.user, proxy.password):
        head += f"Proxy-Authorization: {authorization}\r\n"
    return f"{head}\r\n".encode()

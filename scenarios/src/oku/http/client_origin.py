"""Where the requests of scenarios go: one scheme, host and port, with its connections."""

from yarl import URL

from oku.http.outbound_connection import OutboundConnection
from oku_core.http_client.client_rules import build_basic
from oku_core.http_client.connector import Connector, Way
from oku_core.http_client.idle_pool import IdlePool


class ClientOrigin:
    """One scheme, host and port.

    Args:
        url: a URL there.
        way: how connections are made.

    Attributes:
        host: host and port as the header `Host` has them.
        common: the headers that are the same for all requests there, as bytes; None until they are known.
        before_path: stands before the path in a request line; only a proxy needs something there.
        idle: the connections that wait for a request.
    """

    def __init__(self, url: URL, way: Way) -> None:
        self.host = url.host_port_subcomponent or ""
        self.common: bytes | None = None
        self.before_path = self._proxy_authorization = ""
        if way.proxy is not None and url.scheme != "https":
            self.before_path = f"http://{self.host}"
            self._proxy_authorization = build_basic(way.proxy.user, way.proxy.password)
        self.idle: IdlePool[OutboundConnection] = IdlePool()
        self._connector = Connector(url, way)

    def list_proxy_headers(self) -> list[tuple[str, str]]:
        """The headers for a proxy that forwards requests."""
        authorization = self._proxy_authorization
        return [("Proxy-Authorization", authorization)] if authorization else []

    async def connect(self) -> OutboundConnection:
        """Make a connection, which may raise an `OSError`."""
        connection = OutboundConnection()
        await self._connector.connect(connection)
        return connection

    def close(self) -> None:
        """Close idle connections, and give up a lookup that is under way."""
        self._connector.close()
        self.idle.close()

"""The client session of the aiohttp engine: its settings, and how it connects.

docs/decisions/0005-aiohttp-engine.md lists what is replaced of aiohttp, and why. An aiohttp without the names
that are used here is refused at the start.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import Any

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientHttpProxyError,
    ClientOSError,
    ClientProxyConnectionError,
    ClientRequest,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    NonHttpUrlClientError,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler
from multidict import istr

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR
from oku_core.data.data_format import DataError
from oku_core.http_client.addresses import Addresses
from oku_core.http_client.client_rules import KEEPALIVE_S
from oku_core.http_client.connector import ProxyError
from oku_core.http_client.response_reader import MalformedResponseError
from oku_core.http_client.tls import server_name
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import DEFAULT_HEADERS
from oku_workers.engines.aiohttp.protocol import FindNeeds, ResponseProtocol
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError

MOST_HOSTS = 100
"""How many hosts and ports have their addresses kept."""
_NEVER_SENT = (ClientConnectorError, NonHttpUrlClientError, DataError, ValueError, TypeError)
"""There was no connection, or the request cannot be written down."""
RecordConnection = Callable[[int, int | None], None]
"""Hears how many µs TCP and TLS took, in the task of the request for which a connection was made."""


def build_session(
    spec: Spec, context: EngineContext, record_connection: RecordConnection, find_needs: FindNeeds | None
) -> ClientSession:
    """A session that sends each request once; the engine sees to timeouts.

    Args:
        spec: what to send.
        context: has the local address and the settings of TLS.
        record_connection: hears of each connection that is made.
        find_needs: asked before each request; None if none needs anything.

    Raises:
        EngineError: this aiohttp cannot be used.
    """
    session = ClientSession(
        connector=_Connector(context, record_connection, find_needs),
        timeout=ClientTimeout(total=None, sock_connect=None),
        cookie_jar=DummyCookieJar(),
        proxy=spec.proxy,
        auto_decompress=False,
        request_class=_Request,
    )
    # aiohttp sends an idempotent request a second time when a kept-alive connection turns out closed.
    if not hasattr(session, "_retry_connection"):
        raise EngineError("this aiohttp cannot be kept from sending requests twice")
    session._retry_connection = False  # noqa: SLF001
    return session


def classify(error: Exception) -> int:
    """The outcome, as an index, of a request that ended with an exception of aiohttp or of the spec."""
    if isinstance(error, _NEVER_SENT):
        return CONNECT_ERROR
    return DISCONNECTED if isinstance(error, ClientConnectionError | OSError) else PROTOCOL_ERROR


class _Request(ClientRequest):
    """A request with the headers of all engines of Oku, and none beside; it waits for no `100 Continue`."""

    DEFAULT_HEADERS = ClientRequest.DEFAULT_HEADERS | {
        istr(name): value for name, value in DEFAULT_HEADERS.items()
    }
    POST_METHODS: set[str] = set()  # noqa: RUF012  # aiohttp's type; it would send a `Content-Type` without a body

    def update_expect_continue(self, expect: bool = False) -> None:  # noqa: FBT001, FBT002  # aiohttp's
        """The body follows at once, as with the other engines."""


class _Connector(TCPConnector):
    """Connects as all engines do: aiohttp would forget the known addresses when a lookup fails."""

    def __init__(
        self, context: EngineContext, record_connection: RecordConnection, find_needs: FindNeeds | None
    ) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEPALIVE_S, ssl=context.tls or True)
        self._local_address = context.local_address
        self._record_connection = record_connection
        self._addresses: dict[tuple[str, int], Addresses] = {}
        self._factory = partial(ResponseProtocol, self._loop, find_needs)  # type: ignore[assignment]  # a subclass

    async def _create_direct_connection(
        self,
        req: ClientRequest,
        traces: Any,  # noqa: ARG002  # aiohttp's signature
        timeout: Any,  # noqa: ARG002, ASYNC109
        *,
        client_error: type[Exception] = ClientConnectorError,
    ) -> tuple[asyncio.Transport, ResponseProtocol]:
        host, tls = req.url.raw_host or "", self._get_ssl_context(req)
        name = server_name(req.server_hostname or host) if tls is not None else None
        try:
            addresses = self._find_addresses(host, req.port or 0)
            await addresses.find()
            begun_ns = monotonic_ns()
            lent = await addresses.connect()
            connected_ns = monotonic_ns()
            made = await self._loop.create_connection(self._factory, sock=lent, ssl=tls, server_hostname=name)
        except OSError as error:
            raise client_error(req.connection_key, error) from error
        tls_us = None if tls is None else (monotonic_ns() - connected_ns) // 1000
        self._record_connection((connected_ns - begun_ns) // 1000, tls_us)
        return made  # type: ignore[return-value]  # our own factory made it

    async def _create_proxy_connection(
        self,
        req: ClientRequest,
        traces: Any,
        timeout: Any,  # noqa: ASYNC109  # its signature
    ) -> tuple[asyncio.BaseTransport, ResponseHandler]:
        """Tell a proxy that makes no tunnel from a target that sends no response."""
        try:
            return await super()._create_proxy_connection(req, traces, timeout)
        except ClientProxyConnectionError as error:
            cause: int | Exception | None = error.os_error
        except ClientConnectorError:
            raise
        except ClientHttpProxyError as error:
            cause = error.status
        except ServerDisconnectedError:
            cause = None
        except (ClientOSError, MalformedResponseError) as error:
            cause = error
        raise ClientConnectorError(req.connection_key, ProxyError(cause))

    def _find_addresses(self, host: str, port: int) -> Addresses:
        key = host, port
        if key not in self._addresses:
            if len(self._addresses) >= MOST_HOSTS:  # redirections may lead to ever new ones
                self._addresses.pop(next(iter(self._addresses))).close()
            self._addresses[key] = Addresses(host, port, self._local_address)
        return self._addresses[key]

    def _close(self, **settings: Any) -> list[Any]:
        for addresses in self._addresses.values():
            addresses.close()
        return super()._close(**settings)


if not all(
    hasattr(TCPConnector, name)
    for name in ("_create_direct_connection", "_create_proxy_connection", "_close")
):
    raise RuntimeError("this aiohttp cannot be told how to connect")

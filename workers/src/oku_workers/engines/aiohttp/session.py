"""The client session of the aiohttp engine: its settings, and what aiohttp must be kept from.

Two habits of aiohttp would lead to requests that nobody counts, or responses that nobody asked for. Neither
has a public switch, so an aiohttp that does not have the names used here is refused at the start.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from time import monotonic, monotonic_ns
from typing import Any

from aiohttp import (
    ClientConnectorError,
    ClientRequest,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.connector import BaseConnector, Connection
from multidict import istr

from oku_core.http_client.addresses import Addresses
from oku_core.http_client.client_rules import KEEPALIVE_S
from oku_core.http_client.tls import server_name
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import DEFAULT_HEADERS, asks_to_close
from oku_workers.engines.aiohttp.protocol import ResponseProtocol
from oku_workers.engines.aiohttp.request import build_shared_headers
from oku_workers.engines.aiohttp.sender import needs_sender
from oku_workers.engines.contract.engine_protocol import EngineError

RecordConnection = Callable[[int, int | None], None]
"""Hears how many µs TCP and TLS took, in the task of the request for which a connection was made."""
FindKeptBytes = Callable[[], int]
"""Says how much of the body of a response is kept for checks, in the task of its request."""


def build_session(
    spec: Spec,
    mix: RequestMix,
    record_connection: RecordConnection,
    find_kept_bytes: FindKeptBytes | None,
    local_address: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> ClientSession:
    """A session that sends each request once; the engine sees to timeouts.

    Args:
        spec: what to send.
        mix: the kinds of requests of the spec.
        record_connection: hears of each connection that is made.
        find_kept_bytes: asked before each request; None if nothing of any body is kept.
        local_address: what to send from; the system chooses unless given.
        tls: how to speak TLS.

    Raises:
        EngineError: this aiohttp cannot be used.
    """
    closes = any(asks_to_close(template.headers) for template in mix.templates)
    session = ClientSession(
        connector=_Connector(
            local_address,
            record_connection,
            limit=0,
            force_close=closes,
            keepalive_timeout=None if closes else KEEPALIVE_S,
            ssl=tls or True,
            find_kept_bytes=find_kept_bytes,
        ),
        timeout=ClientTimeout(total=None, sock_connect=None),
        cookie_jar=DummyCookieJar(),
        proxy=spec.proxy,
        auto_decompress=False,
        headers=build_shared_headers(mix, has_sender=needs_sender(spec)),
        request_class=_Request,
    )
    # aiohttp sends an idempotent request a second time when a kept-alive connection turns out closed.
    if not hasattr(session, "_retry_connection"):
        raise EngineError("this aiohttp cannot be kept from sending requests twice")
    session._retry_connection = False  # noqa: SLF001
    return session


MOST_HOSTS = 100
"""How many hosts and ports have their addresses kept."""


class _Request(ClientRequest):
    """A request with the defaults of all engines of Oku."""

    DEFAULT_HEADERS = ClientRequest.DEFAULT_HEADERS | {
        istr(name): value for name, value in DEFAULT_HEADERS.items()
    }
    POST_METHODS: set[str] = set()  # noqa: RUF012  # aiohttp's type; it would send a `Content-Type` without a body


class _Connector(TCPConnector):
    """Uses no kept-alive connection on which something arrived that was not asked for.

    aiohttp looks for that when a connection goes into the pool, not when it leaves it: what arrived meanwhile
    (a `408` before the server hangs up, a body longer than announced) would answer the next request. `_get`
    replaces aiohttp's own method, for calling that one as well costs 3 % of a request.
    """

    def __init__(
        self,
        local_address: str | None,
        record_connection: RecordConnection,
        *,
        find_kept_bytes: FindKeptBytes | None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._local_address = local_address
        self._record_connection = record_connection
        self._addresses: dict[tuple[str, int], Addresses] = {}
        self._factory = partial(  # type: ignore[assignment]  # makes a subclass of aiohttp's own
            ResponseProtocol, self._loop, find_kept_bytes=find_kept_bytes
        )

    async def _get(self, key: Any, traces: Any) -> Connection | None:  # noqa: ARG002  # aiohttp's signature
        idle = self._conns.get(key)
        if idle is None:
            return None
        oldest = monotonic() - KEEPALIVE_S
        while idle:
            protocol, released_at = idle.popleft()
            if released_at > oldest and not protocol.should_close and protocol.is_connected():
                self._acquired.add(protocol)
                return Connection(self, key, protocol, self._loop)
            protocol.close()
        del self._conns[key]
        return None

    async def _create_direct_connection(
        self,
        req: ClientRequest,
        traces: Any,  # noqa: ARG002  # aiohttp's signature
        timeout: Any,  # noqa: ARG002, ASYNC109
        *,
        client_error: type[Exception] = ClientConnectorError,
    ) -> tuple[asyncio.Transport, ResponseProtocol]:
        """Connect as all engines do: aiohttp would forget the known addresses when a lookup fails."""
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


if not all(hasattr(BaseConnector, name) for name in ("_get", "_release", "_close")):
    raise RuntimeError("this aiohttp cannot be kept from reading responses that nobody asked for")
if not hasattr(TCPConnector, "_create_direct_connection"):
    raise RuntimeError("this aiohttp cannot be told how to connect")

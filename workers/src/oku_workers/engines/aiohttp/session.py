"""The client session of the aiohttp engine: its settings, its connections, redirections and cookies.

docs/decisions/0005-aiohttp-engine.md lists which parts of aiohttp are replaced, and why. An aiohttp without
the names that are used here is refused at the start.
"""

from collections.abc import Awaitable
from time import time
from typing import Any

from aiohttp import (
    BaseConnector,
    ClientConnectionError,
    ClientConnectorError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    NonHttpUrlClientError,
)
from multidict import CIMultiDict, istr
from yarl import URL

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR
from oku_core.data.data_format import DataError
from oku_core.http_client.connector import Connector, Way
from oku_core.http_client.cookies import CookieJar, may_set_cookies, merge_cookies
from oku_core.http_client.idle_pool import KEEPALIVE_S
from oku_core.http_client.redirects import Hop, RedirectChain, RedirectError
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import DEFAULT_HEADERS
from oku_workers.engines.aiohttp.protocol import ResponseProtocol, get_body
from oku_workers.engines.aiohttp.slot import CURRENT_SLOT
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError

MOST_ORIGINS = 100
"""How many origins have their addresses kept."""
_NEVER_SENT = (ClientConnectorError, NonHttpUrlClientError, DataError, ValueError, TypeError)
"""There was no connection, or the request cannot be written."""


def build_session(spec: Spec, context: EngineContext) -> ClientSession:
    """A session that sends each request once, without timeouts of its own.

    Raises:
        EngineError: this aiohttp cannot be used.
    """
    session = ClientSession(
        connector=_Connector(spec, context),
        timeout=ClientTimeout(total=None, sock_connect=None),
        cookie_jar=DummyCookieJar(),
        proxy=spec.proxy,
        auto_decompress=False,
        request_class=_Request,
    )
    # aiohttp sends an idempotent request a second time when a kept-alive connection turns out closed.
    hooks = "_create_connection", "_update_proxy_auth_header_and_build_proxy_req"
    if not (hasattr(session, "_retry_connection") and all(hasattr(BaseConnector, hook) for hook in hooks)):
        raise EngineError("this aiohttp has other names inside: it might send requests twice")
    session._retry_connection = False  # noqa: SLF001
    return session


def classify_error(error: Exception) -> int:
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


class _Connector(BaseConnector):
    """The pool of aiohttp, with connections that are made as all engines make them."""

    allowed_protocol_schema_set = frozenset({"http", "https"})

    def __init__(self, spec: Spec, context: EngineContext) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEPALIVE_S)
        proxy = None if spec.proxy is None else URL(spec.proxy)
        self._way = Way(context.tls, proxy, context.local_address)
        self._origins: dict[URL, Connector] = {}

    async def _create_connection(self, req: ClientRequest, traces: Any, timeout: Any) -> ResponseProtocol:  # noqa: ARG002, ASYNC109  # aiohttp's signature
        if req.proxy is not None:
            self._update_proxy_auth_header_and_build_proxy_req(req)
        protocol = ResponseProtocol(self._loop)
        try:
            await self._find_origin(req.url.origin()).connect(protocol)
        except OSError as error:
            raise ClientConnectorError(req.connection_key, error) from error
        if (tally := CURRENT_SLOT.get().tally) is not None:  # else its request was given back meanwhile
            tally.record_connection(*protocol.measure())
        return protocol

    def _find_origin(self, url: URL) -> Connector:
        if url not in self._origins:
            if len(self._origins) >= MOST_ORIGINS:  # redirections may lead to ever new ones
                self._origins.pop(next(iter(self._origins))).close()
            self._origins[url] = Connector(url, self._way)
        return self._origins[url]

    def close(self, *, abort_ssl: bool = True) -> Awaitable[None]:
        """Close all connections, and give up lookups that are under way."""
        for origin in self._origins.values():
            origin.close()
        return super().close(abort_ssl=abort_ssl)


class RedirectingClient:
    """Sends requests with the cookies of their origin, and follows the redirections that the spec allows.

    aiohttp would send headers to any origin, and quote the values of cookies as it sees fit.
    """

    def __init__(self, session: ClientSession, spec: Spec) -> None:
        self._session, self._spec = session, spec
        self._cookies = CookieJar(by_origin=True)

    async def request(self, method: str, url: URL, **arguments: Any) -> ClientResponse:
        """Send a request as `ClientSession.request` does, and return the last response.

        Raises:
            RedirectError: the last redirection cannot be followed, or must not be.
        """
        headers, body = arguments.get("headers", CIMultiDict()), arguments.get("data")
        hop, spec = Hop(method, url, has_body=body is not None), self._spec
        most, has_certificate = spec.max_redirects, spec.cert is not None
        chain = RedirectChain(hop, list(headers.items()), body, most, has_certificate=has_certificate)
        while True:
            response = await self._send(chain.hop, CIMultiDict(chain.headers), chain.body)
            try:
                if not chain.follow(response.status, get_body(response).head):
                    return response
            except RedirectError:
                response.release()
                raise
            response.release()

    async def _send(self, hop: Hop, headers: CIMultiDict[str], body: Any) -> ClientResponse:
        url = str(hop.url)
        if kept := self._cookies.find(url, time()):
            headers["Cookie"] = merge_cookies("; ".join(headers.popall("Cookie", [])), kept)
        response = await self._session.request(
            hop.method, hop.url, headers=headers, data=body, allow_redirects=False
        )
        if self._spec.cookies and may_set_cookies(head := get_body(response).head):
            self._cookies.store(head, url, time())
        return response

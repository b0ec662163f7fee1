"""The client session of the aiohttp engine: its settings, its connections, redirections and cookies.

docs/decisions/0005-aiohttp-engine.md lists which parts of aiohttp are replaced, and why. An aiohttp without
the names that are used here is refused at the start.
"""

from collections.abc import Awaitable
from functools import partial
from time import time
from typing import Any, cast

from aiohttp import (
    BaseConnector,
    ClientConnectionError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    NonHttpUrlClientError,
)
from multidict import istr
from yarl import URL

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR
from oku_core.data.data_format import DataError
from oku_core.http_client.connector import Connector, OriginTable, Way
from oku_core.http_client.cookies import CookieJar, add_cookies
from oku_core.http_client.http1_connection import TransportError
from oku_core.http_client.idle_pool import KEEPALIVE_S
from oku_core.http_client.redirects import Hop, RedirectChain, RedirectError
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import DEFAULT_HEADERS
from oku_workers.engines.aiohttp.protocol import CURRENT_SLOT, AnswerBody, ResponseProtocol
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError

_NEVER_SENT = (NonHttpUrlClientError, DataError, ValueError, TypeError)
"""The request cannot be written."""


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
    hooks = {"_retry_connection", "_create_connection", "_update_proxy_auth_header_and_build_proxy_req"}
    if not hooks | {"_drain_tail"} <= {*dir(session), *dir(BaseConnector), *dir(ResponseProtocol)}:
        raise EngineError("this aiohttp has other names inside: it might send requests twice")
    session._retry_connection = False  # noqa: SLF001
    return session


def classify_error(error: Exception) -> tuple[int, object]:
    """The outcome, as an index, of a request that ended with an exception, and what has caused it."""
    if isinstance(error, TransportError):
        return error.outcome, error.cause
    if isinstance(error, _NEVER_SENT):
        return CONNECT_ERROR, error
    return DISCONNECTED if isinstance(error, ClientConnectionError | OSError) else PROTOCOL_ERROR, error


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
        way = Way(context.tls, proxy, context.local_address)
        self._origins = OriginTable(partial(Connector, way=way))

    async def _create_connection(self, req: ClientRequest, traces: Any, timeout: Any) -> ResponseProtocol:  # noqa: ARG002, ASYNC109  # aiohttp's signature
        if req.proxy is not None:
            self._update_proxy_auth_header_and_build_proxy_req(req)
        origin = self._origins.find(req.url)
        protocol = ResponseProtocol(self._loop, is_forwarded=origin.is_forwarded)
        try:
            await origin.connect(protocol)
        except OSError as error:
            raise TransportError(CONNECT_ERROR, error) from None
        if (tally := CURRENT_SLOT.get().tally) is not None:  # else its request was given back meanwhile
            tally.record_connection(*protocol.measure())
        return protocol

    def close(self, *, abort_ssl: bool = True) -> Awaitable[None]:
        """Close all connections, and give up lookups that are under way."""
        self._origins.close()
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
        headers, body, spec = list(arguments.get("headers", {}).items()), arguments.get("data"), self._spec
        hop, has_certificate = Hop(method, url, has_body=body is not None), spec.cert is not None
        chain = RedirectChain(hop, headers, body, spec.max_redirects, has_certificate=has_certificate)
        while True:
            method, url = chain.hop.method, chain.hop.url
            headers = add_cookies(chain.headers, self._cookies.find(str(url), time()))
            response = await self._session.request(
                method, url, headers=headers, data=chain.body, allow_redirects=False
            )
            head = cast("AnswerBody", response.content).head
            if spec.cookies:
                self._cookies.store(head, str(url), time())
            try:
                if not chain.follow(response.status, head):
                    return response
            except RedirectError:
                response.release()
                raise
            response.release()

"""Sends the requests of specs with redirections or cookies through aiohttp, which would alter both.

aiohttp sends headers to any origin, and quotes what a cookie contains as it sees fit.
"""

from time import time
from typing import Any

from aiohttp import ClientResponse, ClientSession, InvalidURL
from multidict import CIMultiDict
from yarl import URL

from oku_core.http_client.cookies import CookieJar, may_set_cookies, merge_cookies
from oku_core.http_client.redirects import (
    NOT_A_URL,
    Hop,
    RedirectError,
    describe_excess,
    drop_content_headers,
    next_hop,
)
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.protocol import get_body


class Sender:
    """Sends requests with the cookies of their origin, and follows the redirections that the spec allows."""

    def __init__(self, session: ClientSession, spec: Spec) -> None:
        self._session = session
        self._most = spec.max_redirects
        self._has_certificate = spec.cert is not None
        self._cookies = CookieJar(by_origin=True) if spec.cookies else None

    async def request(self, method: str, url: URL, **arguments: Any) -> ClientResponse:
        """Send a request as `ClientSession.request` does, and return the last response.

        Raises:
            RedirectError: the last redirection cannot be followed, or must not be.
        """
        response = await self._send(method, url, arguments)
        hop, count = Hop(method, url, has_body="data" in arguments), 0
        while self._most and (following := self._find_next(hop, response)) is not None:
            if count == self._most:
                raise RedirectError(describe_excess(self._most))
            hop, count = following, count + 1
            if not hop.keeps_content:
                headers = list(arguments.pop("headers", CIMultiDict()).items())
                arguments |= {"data": None, "headers": CIMultiDict(drop_content_headers(headers))}
            if hop.is_foreign:
                arguments.pop("headers", None)
            try:
                response = await self._send(hop.method, hop.url, arguments)
            except InvalidURL as error:  # else the spec has named it
                raise RedirectError(NOT_A_URL) from error
        return response

    def _find_next(self, hop: Hop, response: ClientResponse) -> Hop | None:
        head = get_body(response).head
        try:
            following = next_hop(hop, response.status, head, has_certificate=self._has_certificate)
        except RedirectError:
            response.release()
            raise
        if following is not None:
            response.release()
        return following

    async def _send(self, method: str, url: URL, arguments: dict[str, Any]) -> ClientResponse:
        cookies = self._cookies
        if cookies is not None and not cookies.is_empty and (kept := cookies.find(str(url), time())):
            headers = CIMultiDict[str](arguments.get("headers", ()))
            given = "; ".join(headers.popall("Cookie", []))
            headers["Cookie"] = merge_cookies(given, kept)
            arguments = arguments | {"headers": headers}
        response = await self._session.request(method, url, **arguments)
        if cookies is not None and may_set_cookies(head := get_body(response).head):
            cookies.store(head, str(url), time())
        return response

"""Follows redirections and keeps cookies for aiohttp, which would alter both.

aiohttp sends headers to any origin, and quotes the values of cookies as it sees fit.
"""

from time import time
from typing import Any

from aiohttp import ClientResponse, ClientSession
from multidict import CIMultiDict
from yarl import URL

from oku_core.http_client.cookies import CookieJar, may_set_cookies, merge_cookies
from oku_core.http_client.redirect_chain import RedirectChain
from oku_core.http_client.redirects import Hop, RedirectError
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.protocol import get_body


class RedirectingClient:
    """Sends requests with the cookies of their origin, and follows the redirections that the spec allows."""

    def __init__(self, session: ClientSession, spec: Spec) -> None:
        self._session = session
        self._spec = spec
        self._cookies = CookieJar(by_origin=True) if spec.cookies else None

    async def request(self, method: str, url: URL, **arguments: Any) -> ClientResponse:
        """Send a request as `ClientSession.request` does, and return the last response.

        Raises:
            RedirectError: the last redirection cannot be followed, or must not be.
        """
        headers, body = arguments.get("headers", CIMultiDict()), arguments.get("data")
        hop, spec = Hop(method, url, has_body=body is not None), self._spec
        most, has_certificate = spec.max_redirects, spec.cert is not None
        chain = RedirectChain(hop, list(headers.items()), body, most, has_certificate=has_certificate)
        response = await self._send(chain)
        try:
            while chain.follow(response.status, get_body(response).head):
                response.release()
                response = await self._send(chain)
        except RedirectError:
            response.release()
            raise
        return response

    async def _send(self, chain: RedirectChain) -> ClientResponse:
        (method, url, *_), cookies = chain.hop, self._cookies
        headers = CIMultiDict[str](chain.headers)
        if cookies is not None and (kept := cookies.find(str(url), time())):
            headers["Cookie"] = merge_cookies("; ".join(headers.popall("Cookie", [])), kept)
        response = await self._session.request(
            method, url, headers=headers, data=chain.body, allow_redirects=False
        )
        if cookies is not None and may_set_cookies(head := get_body(response).head):
            cookies.store(head, str(url), time())
        return response

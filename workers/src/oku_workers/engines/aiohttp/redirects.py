"""Redirections of the aiohttp engine: Oku follows them itself, for aiohttp sends headers to any origin."""

from aiohttp import ClientResponse, ClientSession, InvalidURL, hdrs
from yarl import URL

from oku_core.http_client.client_rules import (
    NOT_A_URL,
    REDIRECTIONS,
    RedirectError,
    check_other_origin,
    describe_excess,
    join_location,
    turns_into_get,
)
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.request import LongBody

Headers = list[tuple[str, str]]


class Redirects:
    """Sends requests, and follows as many redirections of each as the spec allows."""

    def __init__(self, session: ClientSession, spec: Spec) -> None:
        self._session = session
        self._most = spec.max_redirects
        self._has_certificate = spec.cert is not None

    async def request(
        self, method: str, url: URL, *, headers: Headers | None = None, data: bytes | LongBody | None = None
    ) -> ClientResponse:
        """Send a request as `ClientSession.request` does, and return the last response.

        Raises:
            RedirectError: the last redirection cannot be followed, or must not be.
        """
        for hop in range(self._most + 1):
            try:
                response = await self._session.request(
                    method, url, headers=headers, data=data, allow_redirects=False
                )
            except InvalidURL as error:
                if not hop:  # the spec has named it
                    raise
                raise RedirectError(NOT_A_URL) from error
            location = response.headers.get(hdrs.LOCATION)
            if response.status not in REDIRECTIONS or not location:
                return response
            response.release()
            following = join_location(url, location)
            if turns_into_get(response.status, method):
                method, data, headers = hdrs.METH_GET, None, _drop_content_headers(headers)
            if following.origin() != url.origin():
                check_other_origin(
                    following, has_body=data is not None, has_certificate=self._has_certificate
                )
                headers = None
            url = following
        raise RedirectError(describe_excess(self._most))


def _drop_content_headers(headers: Headers | None) -> Headers | None:
    """The headers without those about a body."""
    return headers and [header for header in headers if not header[0].lower().startswith("content-")]

"""Redirections of the aiohttp engine: Oku follows them, for aiohttp sends headers and bodies to any origin.

What the spec says is for the origin that it names (scheme, host and port). Another one gets a request without
the headers, credentials and cookies of the spec, and none that would need its body or client certificate.
"""

from aiohttp import ClientResponse, ClientSession, hdrs
from yarl import URL

from oku_core.spec.spec import Spec

Headers = list[tuple[str, str]]

_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_SEE_OTHER = 303
_GET_AFTER_POST = frozenset({301, 302})


class RedirectError(Exception):
    """A redirection that is not followed."""


class Redirects:
    """Sends requests, and follows as many redirections of each as the spec allows."""

    def __init__(self, session: ClientSession, spec: Spec) -> None:
        self._session = session
        self._most = spec.max_redirects
        self._has_certificate = spec.cert is not None

    async def request(
        self, method: str, url: URL, *, headers: Headers | None = None, data: bytes | None = None
    ) -> ClientResponse:
        """Send a request as `ClientSession.request` does, and return the last response.

        Raises:
            RedirectError: the last redirection cannot be followed, or must not be.
        """
        for _ in range(self._most + 1):
            response = await self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False
            )
            location = response.headers.get(hdrs.LOCATION)
            if response.status not in _REDIRECTIONS or not location:
                return response
            response.release()
            following = _join(url, location)
            if _turns_into_get(response.status, method):
                method, data, headers = hdrs.METH_GET, None, _drop_content_headers(headers)
            if following.origin() != url.origin():
                self._check_other_origin(following, data)
                headers = None
            url = following
        raise RedirectError(f"more than {self._most} redirections")

    def _check_other_origin(self, url: URL, data: bytes | None) -> None:
        if data is not None:
            raise RedirectError("a redirection of a request with a body to another origin")
        if self._has_certificate and url.scheme == "https":
            raise RedirectError("a redirection to another origin, which could ask for the client certificate")


def _join(url: URL, location: str) -> URL:
    """Where a redirection leads to; a user in the URL is kept only within an origin."""
    try:
        following = url.join(URL(location))
        is_same = following.origin() == url.origin()
    except ValueError as error:
        raise RedirectError("a redirection to what is not a URL") from error
    if following.scheme not in ("http", "https"):
        raise RedirectError(f"a redirection to a URL of {following.scheme}")
    if is_same:
        return following.with_user(url.user).with_password(url.password) if url.user else following
    return following.with_user(None)


def _turns_into_get(status: int, method: str) -> bool:
    """Whether the next request is a GET, as in browsers (RFC 9110, sections 15.4.2 to 15.4.4)."""
    if status == _SEE_OTHER:
        return method != hdrs.METH_HEAD
    return status in _GET_AFTER_POST and method == hdrs.METH_POST


def _drop_content_headers(headers: Headers | None) -> Headers | None:
    """The headers without those about a body."""
    return headers and [header for header in headers if not header[0].lower().startswith("content-")]

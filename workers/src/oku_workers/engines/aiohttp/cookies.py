"""The cookies of the aiohttp engine: each goes back to the origin that set it, and to no other.

Browsers send cookies to every port and scheme of a host, and to hosts of the same domain, so a redirection
would carry them away. aiohttp bounds what one jar holds.
"""

from collections.abc import Sequence
from http.cookies import BaseCookie, SimpleCookie

from aiohttp import CookieJar
from yarl import URL

MOST_ORIGINS = 30
"""Beyond so many, the oldest ones are forgotten: redirections may lead to ever new origins."""


_NOWHERE = URL()


class OriginCookieJar(CookieJar):
    """One jar for each origin (scheme, host and port), behind the two methods that a session calls."""

    def __init__(self) -> None:
        super().__init__()
        self._jars: dict[URL, CookieJar] = {}

    def filter_cookies(self, request_url: URL = _NOWHERE) -> "BaseCookie[str]":
        """The cookies for a request."""
        jar = self._jars.get(request_url.origin())
        return SimpleCookie() if jar is None else jar.filter_cookies(request_url)

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        """Take the cookies of a response."""
        origin = response_url.origin()
        jar = self._jars.get(origin)
        if jar is None:
            if len(self._jars) >= MOST_ORIGINS:
                del self._jars[next(iter(self._jars))]
            # Cookies of addresses count as well: many targets of a load test have no name.
            jar = self._jars[origin] = CookieJar(unsafe=True)
        jar.update_cookies_from_headers(headers, response_url)

"""Rules that all clients share, so that engines do not differ: default headers, limits, URLs and redirects.

Path and query are sent as they are written; characters that a URL cannot contain are percent-encoded. No
honest server comes near the limits of a response. Headers, credentials and cookies are for the origin
(scheme, host and port) that the user named: a redirect to another origin goes without them, and is not
followed if it would need the body or a client certificate.
"""

import re
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from oku_core.spec.values.url import Url

DEFAULT_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "oku/0.1",
}
BODY_TYPE = "application/octet-stream"
"""The `Content-Type` of a body."""
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Requests of other methods say that their body is empty when there is none: nobody waits for it then."""
KEEPALIVE_S = 15.0
"""Idle connections are closed after this, before most servers close them."""


LONGEST_HEAD_BYTES = 65_536
"""All that comes before a body: blank lines, interim responses, status line and headers. A single header may
be as long (curl: 100 KiB, nginx: 8 KiB, aiohttp's own: 8 KiB)."""
MOST_HEADERS = 1000
"""Header lines of one response, interim or final (curl: 5000, nginx: 1000, aiohttp's own: 128)."""
LONGEST_FRAMING_BYTES = 65_536
"""What may come between two pieces of a chunked body, or after it: the size of a chunk, the trailers."""
LARGEST_BODY_BYTES = 2**40
"""Bodies are dropped as they arrive: this only ends what no honest server sends."""


_KEPT = "/%:@!$&'()*+,;=?[]{}"
"""What is sent as it is written, beside letters, digits and `-._~` (RFC 3986, section 2), and the index."""


class RequestTarget(NamedTuple):
    """Path and query of a URL as a request line has them, the placeholders of the index still in them."""

    path: str
    query: str


def build_origin(url: Url) -> URL:
    """Scheme, user, host and port of a URL; `ValueError` when there is nobody to ask."""
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"{url} is not a URL of http or https with a host")
    return URL(f"{url.scheme}://{url.authority}")


def build_target(url: Url) -> RequestTarget:
    """What to ask for; the path is at least `/`."""
    return RequestTarget(quote(url.path or "/", safe=_KEPT), quote(url.query, safe=_KEPT))


REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
"""The statuses of answers that say in `Location` where to ask instead."""
_SEE_OTHER = 303
_GET_AFTER_POST = frozenset({301, 302})
NOT_A_URL = "a redirection to what is not a URL"
_LONG_AUTHORITY = re.compile(r"[\x00-\x20]*+(?:[A-Za-z][A-Za-z0-9+.-]*+:)?//[^/?#]{513}")
"""A host name has at most 253 characters; to encode a much longer one takes seconds."""


class RedirectError(Exception):
    """A redirection that is not followed; its text is the reason of the request, a `protocol_error`."""


def describe_excess(most: int) -> str:
    """The reason of a request that was sent on more often than it may be, as in a loop."""
    return f"more than {most} redirections"


def join_location(url: URL, location: str) -> URL:
    """Where a redirection leads to; a user in the URL is kept only within an origin.

    Raises:
        RedirectError: it leads nowhere that can be asked.
    """
    if _LONG_AUTHORITY.match(location.replace("\t", "")):  # a URL is read without tabs
        raise RedirectError(NOT_A_URL)
    try:
        following = url.join(URL(location))
    except ValueError as error:
        raise RedirectError(NOT_A_URL) from error
    if following.scheme not in ("http", "https"):
        raise RedirectError(f"a redirection to a URL of {following.scheme}")
    if not (host := following.host) or not host.isprintable() or " " in host:
        raise RedirectError(NOT_A_URL)
    if following.origin() == url.origin():
        return following.with_user(url.user).with_password(url.password) if url.user else following
    return following.with_user(None)


def turns_into_get(status: int, method: str) -> bool:
    """Whether the next request is a GET, as in browsers (RFC 9110, sections 15.4.2 to 15.4.4)."""
    if status == _SEE_OTHER:
        return method != "HEAD"
    return status in _GET_AFTER_POST and method == "POST"


def check_other_origin(url: URL, *, has_body: bool, has_certificate: bool) -> None:
    """Check that a request may go on to another origin.

    Args:
        url: where it is to go.
        has_body: whether it has one.
        has_certificate: whether there is a client certificate.

    Raises:
        RedirectError: it may not.
    """
    if has_body:
        raise RedirectError("a redirection of a request with a body to another origin")
    if has_certificate and url.scheme == "https":
        raise RedirectError("a redirection to another origin, which could ask for the client certificate")

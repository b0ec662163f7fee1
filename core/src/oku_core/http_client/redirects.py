"""Redirections: where a response sends a request on to, and whether it may go there.

A `Location` is sent as the server wrote it; only characters that a URL cannot contain are percent-encoded.
Headers, credentials and cookies are for the origin (scheme, host and port) that the user named: a redirect to
another origin goes without them, and is not followed if it would need the body or a client certificate.
"""

from typing import Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from yarl import URL

from oku_core.http_client.error_reason import REDIRECTED_TOO_OFTEN, ReasonError
from oku_core.http_client.response_head import find_values

REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
"""The statuses of responses with a `Location` to follow."""
_SEE_OTHER = 303
_GET_AFTER_POST = frozenset({301, 302})
NOT_A_URL = "a redirection to what is not a URL"
_LONGEST_AUTHORITY = 512
"""A host name has at most 253 characters; to encode a much longer one takes seconds."""
_KEPT = "/%:@!$&'()*+,;=?[]"
"""What is sent as it is written, beside letters, digits and `-._~`."""
_AROUND = "".join(map(chr, range(33)))
"""Control characters and blanks around a URL do not belong to it."""

AnyBody = TypeVar("AnyBody")


class RedirectError(ReasonError):
    """A redirection that is not followed: a `protocol_error`."""


class Hop(NamedTuple):
    """One request of a chain of redirections.

    Attributes:
        method: in upper case.
        url: where it goes.
        has_body: whether it has one.
        keeps_content: whether it has what the request before had: its body, and the headers about that.
        is_foreign: whether the chain has left the first origin: it has no headers of the spec then.
    """

    method: str
    url: URL
    has_body: bool
    keeps_content: bool = True
    is_foreign: bool = False


class RedirectChain(Generic[AnyBody]):
    """The requests that follow a first one as responses redirect it.

    Args:
        hop: the first request.
        headers: its own headers.
        body: its body; None without one.
        most: how many redirections are followed; 0 if the first response is the last.
        has_certificate: whether there is a client certificate.

    Attributes:
        hop: the latest request.
        headers: its headers; none of the user's after the chain has left the first origin.
        body: its body.
    """

    __slots__ = ("_count", "_has_certificate", "_most", "body", "headers", "hop")

    def __init__(
        self,
        hop: Hop,
        headers: list[tuple[str, str]],
        body: AnyBody | None,
        most: int,
        *,
        has_certificate: bool,
    ) -> None:
        self.hop = hop
        self.headers = headers
        self.body = body
        self._most = most
        self._has_certificate = has_certificate
        self._count = 0

    def follow(self, status: int, head: bytes) -> bool:
        """Go on to the request that a response asks for; False if it is the last response.

        Args:
            status: of the response to the latest request.
            head: its status line and headers.

        Raises:
            RedirectError: the redirection cannot be followed, or must not be.
        """
        if not self._most:
            return False
        following = next_hop(self.hop, status, head, has_certificate=self._has_certificate)
        if following is None:
            return False
        if self._count == self._most:
            raise RedirectError(describe_excess(self._most))
        self._count += 1
        self.hop = following
        if not following.keeps_content:
            self.headers, self.body = drop_content_headers(self.headers), None
        if following.is_foreign:
            self.headers = []
        return True


def next_hop(hop: Hop, status: int, head: bytes, *, has_certificate: bool) -> Hop | None:
    """The request that a response asks for instead of its own; None if it is no redirection.

    Args:
        hop: the request.
        status: of the response.
        head: its status line and headers.
        has_certificate: whether there is a client certificate.

    Raises:
        RedirectError: it leads nowhere that can be asked, or must not be followed.
    """
    locations = find_values(head, b"location") if status in REDIRECTIONS else []
    if not locations or not locations[0]:
        return None
    url = join_location(hop.url, locations[0].decode("utf-8", "surrogateescape"))
    method, keeps_content = hop.method, True
    # As in browsers (RFC 9110, sections 15.4.2 to 15.4.4).
    if (status in _GET_AFTER_POST and method == "POST") or (status == _SEE_OTHER and method != "HEAD"):
        method, keeps_content = "GET", False
    has_body = hop.has_body and keeps_content
    is_foreign = not is_same_origin(url, hop.url)
    if is_foreign:
        check_other_origin(url, has_body=has_body, has_certificate=has_certificate)
    return Hop(method, url, has_body, keeps_content, hop.is_foreign or is_foreign)


def describe_excess(most: int) -> str:
    """The reason of a request that was sent on more often than it may be, as in a loop."""
    return f"{REDIRECTED_TOO_OFTEN} {most} redirections"


def join_location(url: URL, location: str) -> URL:
    """Where a redirection leads to, without its fragment; a user in the URL is kept only within an origin.

    Args:
        url: the URL of the request.
        location: as the server wrote it; bytes that are not UTF-8 are surrogates.

    Raises:
        RedirectError: it leads nowhere that can be asked.
    """
    try:
        parts = urlsplit(location.strip(_AROUND))
        if (scheme := parts.scheme or url.scheme) not in ("http", "https"):
            raise RedirectError(f"a redirection to a URL of {scheme}")
        if len(parts.netloc) > _LONGEST_AUTHORITY:
            raise RedirectError(NOT_A_URL)
        if parts.netloc:
            place, path, query = URL(f"{scheme}://{parts.netloc}"), parts.path, parts.query
        elif scheme == url.scheme:
            place = URL.build(scheme=scheme, authority=url.raw_authority, encoded=True)
            path = _join_path(url.raw_path, parts.path)
            is_same_page = not location.strip(_AROUND).partition("#")[0]
            query = url.raw_query_string if is_same_page else parts.query
        else:
            raise RedirectError(NOT_A_URL)
        if not (host := place.host) or not host.isprintable() or " " in host:
            raise RedirectError(NOT_A_URL)
        if not is_same_origin(place, url):
            place = place.with_user(None)
        elif url.raw_user:
            place = URL.build(scheme=scheme, authority=url.raw_authority, encoded=True)
    except ValueError as error:
        raise RedirectError(NOT_A_URL) from error
    return URL.build(
        scheme=scheme,
        authority=place.raw_authority,
        path=_quote(_remove_dots(path or "/")),
        query_string=_quote(query),
        encoded=True,
    )


def is_same_origin(one: URL, other: URL) -> bool:
    """Whether two URLs have one scheme, host and port; the port may be left out if it is the usual one."""
    return (one.scheme, one.raw_host, one.port) == (other.scheme, other.raw_host, other.port)


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


def drop_content_headers(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers without those about a body."""
    return [header for header in headers if not header[0].lower().startswith("content-")]


def _join_path(base: str, path: str) -> str:
    """A path seen from another one (RFC 3986, section 5.2.3)."""
    if not path:
        return base
    return path if path.startswith("/") else base[: base.rfind("/") + 1] + path


def _remove_dots(path: str) -> str:
    """A path without `.` and `..` (RFC 3986, section 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def _quote(text: str) -> str:
    return quote(text, safe=_KEPT, errors="surrogateescape")

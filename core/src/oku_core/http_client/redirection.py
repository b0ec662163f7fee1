"""Which redirections are followed, and what becomes of a request on its way.

What was said is for the origin (scheme, host and port) that was named. Another one gets a request without its
headers, credentials and cookies, and none that would need its body or a client certificate.
"""

import re

from yarl import URL

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

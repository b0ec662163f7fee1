"""The head of an HTTP/1.1 request, as every client of Oku writes it: request line, headers and credentials.

A header of the user replaces Oku's own of the same name. A proxy that forwards plain requests gets the target
in absolute form (RFC 9112, section 3.2.2).
"""

import base64
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from oku_core.spec.values.request_content import BODY_TYPE, DEFAULT_HEADERS
from oku_core.spec.values.template import Template
from oku_core.spec.values.url import Url

METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Requests of other methods without a body have `Content-Length: 0`, so that no server waits for one."""
REQUEST_LINE_END = " HTTP/1.1\r\n"
_MALFORMED = re.compile(r"[\r\n\0]")
_KEPT = "/%:@!$&'()*+,;=?[]{}"
"""What is sent as it is written, beside letters, digits and `-._~` (RFC 3986, section 2), and the index."""


class RequestTarget(NamedTuple):
    """Path and query of a URL as a request line has them, the placeholders of the index still in them."""

    path: str
    query: str


def build_origin(url: Url) -> URL:
    """Scheme, user, host and port of a URL; `ValueError` when there is no host."""
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"{url} is not a URL of http or https with a host")
    return URL(f"{url.scheme}://{url.authority}")


def build_basic(user: str | bytes | None, password: str | bytes | None) -> str:
    """The value of an `Authorization` header with user and password; empty without both."""
    if user is None and password is None:
        return ""
    parts = [part if isinstance(part, bytes) else (part or "").encode() for part in (user, password)]
    return f"Basic {base64.b64encode(b':'.join(parts)).decode()}"


def build_target(url: Url) -> RequestTarget:
    """What to ask for; the path is at least `/`."""
    return RequestTarget(quote(url.path or "/", safe=_KEPT), quote(url.query, safe=_KEPT))


def build_line_start(method: str, origin: URL, proxy: URL | None = None) -> str:
    """The request line up to path and query.

    Args:
        method: in upper case.
        origin: scheme, host and port.
        proxy: the proxy of the request; None without one. To https, there is a tunnel through it.
    """
    if proxy is None or origin.scheme == "https":
        return f"{method} "
    return f"{method} http://{origin.host_port_subcomponent}"


def list_own_headers(
    origin: URL, given: Collection[str], *, has_body: bool = False, proxy: URL | None = None
) -> list[tuple[str, str]]:
    """Oku's own headers of a request.

    Args:
        origin: scheme, host and port; its user and password become a header.
        given: the names of the user's headers, in lower case, which Oku does not add.
        has_body: whether the request has a body that needs a content type.
        proxy: as for `build_line_start`.
    """
    own = {"Host": origin.host_port_subcomponent or "", **DEFAULT_HEADERS}
    if proxy is not None and origin.scheme != "https":
        own["Proxy-Authorization"] = build_basic(proxy.user, proxy.password)
    own["Authorization"] = build_basic(origin.user, origin.password)
    if has_body:
        own["Content-Type"] = BODY_TYPE
    return [(name, value) for name, value in own.items() if value and name.lower() not in given]


def write_headers(headers: Iterable[tuple[str, str | Template]]) -> Template:
    """Headers as they are sent, each with its line break.

    Raises:
        ValueError: a line break or NUL in one of them would end it, and begin another.
    """
    written = Template()
    for name, value in headers:
        check_header(name, value if isinstance(value, str) else value.literal)
        written = written + f"{name}: " + value + "\r\n"
    return written


def check_header(name: str, value: str) -> None:
    """Raise `ValueError` if a header has a line break or NUL, with which another one could begin."""
    if _MALFORMED.search(f"{name}{value}"):
        raise ValueError(f"the header {name!r} has a line break or NUL")

"""Rules that all clients share, so that engines do not differ: limits and URLs.

Path and query are sent as they are written; characters that a URL cannot contain are percent-encoded. No
honest server comes near the limits of a response.
"""

import base64
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from oku_core.spec.values.url import Url

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
PIECE_BYTES = 65_536
"""Longer requests are sent in pieces of this size: a transport may copy everything it is given, while other
connections wait."""


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


def build_basic(user: str | bytes | None, password: str | bytes | None) -> str:
    """The value of an `Authorization` header with user and password; empty without both."""
    if user is None and password is None:
        return ""
    parts = [part if isinstance(part, bytes) else (part or "").encode() for part in (user, password)]
    return f"Basic {base64.b64encode(b':'.join(parts)).decode()}"


def build_target(url: Url) -> RequestTarget:
    """What to ask for; the path is at least `/`."""
    return RequestTarget(quote(url.path or "/", safe=_KEPT), quote(url.query, safe=_KEPT))

"""What is made of URLs: where to connect, and what to ask for there.

Path and query are sent as they are written; what a URL cannot contain is percent-encoded.
"""

from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from oku_core.spec.values.url import Url

_KEPT = "/%:@!$&'()*+,;=?[]{}"
"""What is sent as it is written, beside letters, digits and `-._~` (RFC 3986, section 2), and the index."""


class Target(NamedTuple):
    """Path and query of a URL as a request line has them, the placeholders of the index still in them."""

    path: str
    query: str


def build_origin(url: Url) -> URL:
    """Scheme, user, host and port of a URL; `ValueError` when there is nobody to ask."""
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"{url} is not a URL of http or https with a host")
    return URL(f"{url.scheme}://{url.authority}")


def build_target(url: Url) -> Target:
    """What to ask for; the path is at least `/`."""
    return Target(quote(url.path or "/", safe=_KEPT), quote(url.query, safe=_KEPT))

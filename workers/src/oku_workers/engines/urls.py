"""What the engines make of the URLs of a spec: where to connect, and what to ask for there.

Path and query are sent as they are written; what a URL cannot contain is percent-encoded.
"""

from typing import NamedTuple
from urllib.parse import quote, urlsplit

from yarl import URL

_KEPT = "/%:@!$&'()*+,;=?[]{}"
"""What is sent as it is written, beside letters, digits and `-._~` (RFC 3986, section 2), and the index."""


class Target(NamedTuple):
    """Path and query of a URL as a request line has them, the placeholders of the index still in them."""

    path: str
    query: str


def parse_origin(url: str) -> URL:
    """Scheme, user, host and port of a URL; `ValueError` when there is nobody to ask."""
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        raise ValueError(f"{url} is no URL of http or https with a host")
    return URL(f"{split.scheme}://{split.netloc}")


def parse_target(url: str) -> Target:
    """What to ask for; the path is at least `/`."""
    split = urlsplit(url)
    return Target(quote(split.path or "/", safe=_KEPT), quote(split.query, safe=_KEPT))

"""The cookies of one iteration, or of one user: aiohttp's jar, which is made when a first cookie comes."""

import re
from functools import lru_cache

from aiohttp import CookieJar
from yarl import URL

_SETS_COOKIE = re.compile(rb"\nset-cookie[ \t]*:([^\r\n]*)", re.IGNORECASE)
_build_url = lru_cache(1_000)(URL)


class CookieStore:
    """Keeps cookies as browsers do (RFC 6265), but those of addresses, too: many targets have no name."""

    __slots__ = ("_jar",)

    def __init__(self) -> None:
        self._jar: CookieJar | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no cookie has ever come."""
        return self._jar is None

    def take_in(self, head: bytes, url: str) -> None:
        """Keep the cookies that an answer sets.

        Args:
            head: status line and headers of the answer.
            url: of the request.
        """
        if not (headers := _SETS_COOKIE.findall(head)):
            return
        if self._jar is None:
            self._jar = CookieJar(unsafe=True)
        texts = [header.strip().decode("utf-8", "replace") for header in headers]
        self._jar.update_cookies_from_headers(texts, _build_url(url))

    def find(self, url: str) -> str:
        """The value of the header `Cookie` for a URL; empty if there are none for it."""
        if self._jar is None:
            return ""
        found = self._jar.filter_cookies(_build_url(url))
        return "; ".join(f"{name}={cookie.coded_value}" for name, cookie in found.items())

    def clear(self) -> None:
        """Forget them all."""
        self._jar = None


def merge_cookies(given: str, kept: str) -> str:
    """The value of one header `Cookie` from two; of two cookies with one name, that which a server has set.

    Args:
        given: as the user wrote it; may be empty.
        kept: as `CookieStore.find` gives it.
    """
    names = {pair.partition("=")[0].strip() for pair in kept.split(";")}
    others = [
        pair for pair in given.split(";") if pair.strip() and pair.partition("=")[0].strip() not in names
    ]
    return "; ".join([*map(str.strip, others), kept])


def has_cookies(head: bytes) -> bool:
    """Whether an answer may set cookies; a look that costs next to nothing."""
    return b"ookie" in head or b"OOKIE" in head

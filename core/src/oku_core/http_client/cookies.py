"""The cookies of a client, stored and sent back by RFC 6265; comments name its sections.

A value goes back byte for byte as the server wrote it. Cookies of addresses are kept as well as those of
names: many targets have no name. A list of public suffixes is out of scope: a server of `a.co.uk` can set a
cookie for all of `co.uk`, which reaches only those hosts that the load test asks.

A jar is bounded, so that no server can fill the memory of a worker: it ignores what browsers ignore as too
long. Of a domain with too many cookies it forgets the oldest one, and of too many domains the oldest one.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from yarl import URL

from oku_core.http_client.response_head import find_values

LONGEST_COOKIE_BYTES = 4096
"""Name and value together; a longer cookie is ignored (RFC 6265bis, section 5.6; so do browsers)."""
LONGEST_ATTRIBUTE_BYTES = 1024
"""The value of an attribute; a longer one is ignored (RFC 6265bis, section 5.6)."""
MOST_COOKIES_OF_DOMAIN = 50
"""What a client keeps at the least (RFC 6265, section 6.1)."""
MOST_DOMAINS = 30
"""How many domains have cookies; redirections may lead to ever new ones."""

_CONTROLS = bytes([*range(9), *range(10, 32), 127])
_DIGITS = b"0123456789"
_OF_TOKENS = {*range(9), *range(10, 32), *_DIGITS, *b":", *range(0x41, 0x5B), *range(0x61, 0x7B)}
_OF_TOKENS |= {*range(0x7F, 0x100)}
_BLANK_DELIMITERS = bytes([code if code in _OF_TOKENS else 32 for code in range(256)])
"""Turns the delimiters of a date into blanks (section 5.1.1)."""
_MONTHS = {
    name: number
    for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)
}
_EARLIEST_YEAR = 1601
_THIS_CENTURY, _LAST_CENTURY = 70, 100
"""Years of two digits below the first are of this century, the others of the last."""
_NEVER = float("inf")


class _Place(NamedTuple):
    """The parts of a URL that decide on cookies: `host` in lower case, `path` without a query."""

    is_secure: bool
    authority: str
    host: str
    path: str


class _Cookie(NamedTuple):
    """One cookie: `number` is its age among all, and it expires at `ends_s`, in Unix time."""

    number: int
    pair: str
    ends_s: float
    is_host_only: bool
    is_secure: bool


_Domain = dict[tuple[str, str], _Cookie]
"""The cookies of one domain by path and name, the oldest first."""


class CookieJar:
    """The cookies of one iteration, of one user, or of one engine.

    Args:
        by_origin: whether cookies go back only to the origin (scheme, host and port) that set them; else as
            in browsers to all ports of a host, and to the hosts of a domain that the server names.

    Attributes:
        is_empty: whether there has been none since the start or since `clear`; there is nothing to find then.
    """

    __slots__ = ("_by_origin", "_count", "_domains", "is_empty")

    def __init__(self, *, by_origin: bool = False) -> None:
        self._by_origin = by_origin
        self.is_empty = True
        self._domains: dict[str, _Domain]
        self._count = 0

    def store(self, head: bytes, url: str, now_s: float) -> None:
        """Store the cookies that a response sets (section 5.3).

        Args:
            head: its status line and headers.
            url: of the request.
            now_s: the time of the wall.
        """
        place = _parse_url(url)
        for line in find_values(head, b"set-cookie"):
            self._store_line(line, place, now_s)

    def find(self, url: str, now_s: float) -> str:
        """The value of the header `Cookie` for a request (section 5.4); empty if there are no cookies for it.

        Args:
            url: of the request.
            now_s: the time of the wall.
        """
        if self.is_empty:
            return ""
        place = _parse_url(url)
        is_secure, _, host, path = place
        found: list[tuple[int, int, str]] = []
        for domain in [_name_origin(place)] if self._by_origin else _list_domains(host):
            for (cookie_path, _), cookie in self._domains.get(domain, {}).items():
                if (
                    cookie.ends_s > now_s
                    and (is_secure or not cookie.is_secure)
                    and (not cookie.is_host_only or domain == host or self._by_origin)
                    and _matches_path(path, cookie_path)
                ):
                    found.append((-len(cookie_path), cookie.number, cookie.pair))
        found.sort()  # the longest path first; among equals the oldest
        return "; ".join([pair for _, _, pair in found])

    def clear(self) -> None:
        """Forget all cookies."""
        self.is_empty = True

    def _store_line(self, line: bytes, place: _Place, now_s: float) -> None:
        """Store one cookie, or delete the one with its name, domain and path."""
        parsed = _parse_line(line)
        if parsed is None:
            return
        name, pair, attributes = parsed
        if name.startswith("__") and _breaks_prefix(name.lower(), attributes, place):
            return
        domain = _decode(attributes.get(b"domain", b"")).removeprefix(".").lower()
        if domain and domain not in _list_domains(place.host):
            return
        path = _decode(attributes.get(b"path", b""))
        if not path.startswith("/"):
            path = _find_default_path(place.path)
            if len(path) > LONGEST_ATTRIBUTE_BYTES:
                return
        self._count += 1
        ends_s = _find_end_s(attributes, now_s)
        cookie = _Cookie(self._count, pair, ends_s, not domain, b"secure" in attributes)
        where = _name_origin(place) if self._by_origin else domain or place.host
        if ends_s > now_s:
            self._put(where, (path, name), cookie, now_s)
        elif not self.is_empty:
            self._delete(where, (path, name))

    def _put(self, domain: str, key: tuple[str, str], cookie: _Cookie, now_s: float) -> None:
        if self.is_empty:
            self._domains = {}
            self.is_empty = False
        kept = self._domains.get(domain)
        if kept is None:
            if len(self._domains) >= MOST_DOMAINS:
                del self._domains[next(iter(self._domains))]
            kept = self._domains[domain] = {}
        if key in kept:
            cookie = cookie._replace(number=kept[key].number)
        elif len(kept) >= MOST_COOKIES_OF_DOMAIN:
            expired = [each for each, old in kept.items() if old.ends_s <= now_s]
            for each in expired or [next(iter(kept))]:
                del kept[each]
        kept[key] = cookie

    def _delete(self, domain: str, key: tuple[str, str]) -> None:
        kept = self._domains.get(domain, {})
        kept.pop(key, None)
        if not kept:
            self._domains.pop(domain, None)


def may_set_cookies(head: bytes) -> bool:
    """Whether a response may set cookies; this costs next to nothing."""
    return b"ookie" in head or b"OOKIE" in head


def add_cookies(headers: list[tuple[str, str]], kept: str, common: str = "") -> list[tuple[str, str]]:
    """Headers with one `Cookie` for the user's cookies and the server's; the server's replace equal names.

    Args:
        headers: of a request.
        kept: as `CookieJar.find` gives it.
        common: the value of the user's `Cookie` if `headers` has none; may be empty.
    """
    if not kept:
        return headers
    names = {pair.partition("=")[0].strip() for pair in kept.split(";")}
    given = [value for name, value in headers if name.lower() == "cookie"] or [common]
    pairs = [pair.strip() for value in given for pair in value.split(";")]
    own = [pair for pair in pairs if pair and pair.partition("=")[0].strip() not in names]
    others = [header for header in headers if header[0].lower() != "cookie"]
    return [*others, ("Cookie", "; ".join([*own, kept]))]


def parse_date(text: bytes) -> float | None:
    """A date of any form as seconds since 1970 (section 5.1.1); None if it is none."""
    time: tuple[int, int, int] | None = None
    day = month = year = None
    for token in text.translate(_BLANK_DELIMITERS).split(b" "):
        if time is None and (time := _parse_time(token)) is not None:
            continue
        if day is None and (day := _parse_leading(token, 1, 2)) is not None:
            continue
        if month is None and (month := _MONTHS.get(token[:3].lower())) is not None:
            continue
        if year is None:
            year = _parse_leading(token, 2, 4)
    if time is None or day is None or month is None or year is None:
        return None
    if year < _LAST_CENTURY:
        year += 2000 if year < _THIS_CENTURY else 1900
    try:
        return datetime(year, month, day, *time, tzinfo=UTC).timestamp() if year >= _EARLIEST_YEAR else None
    except ValueError:  # there is no such day or time
        return None


def _parse_time(token: bytes) -> tuple[int, int, int] | None:
    """Hours, minutes and seconds, each of one or two digits; the rest is ignored."""
    hours, colon, others = token.partition(b":")
    minutes, _, seconds = others.partition(b":")
    second = _parse_leading(seconds, 1, 2)
    if not colon or second is None or not (_is_number(hours) and _is_number(minutes)):
        return None
    return int(hours), int(minutes), second


def _is_number(text: bytes) -> bool:
    return text.isdigit() and _parse_leading(text, 1, 2) is not None


def _parse_leading(token: bytes, fewest: int, most: int) -> int | None:
    """The number at the start of a token; None if it has fewer or more digits."""
    count = len(token) - len(token.lstrip(_DIGITS))
    return int(token[:count]) if fewest <= count <= most else None


def _parse_line(line: bytes) -> tuple[str, str, dict[bytes, bytes]] | None:
    """Name, pair as it is sent, and attributes of a `Set-Cookie` (section 5.2); None if it is to be ignored.

    One with control characters is ignored, as by RFC 6265bis: it could end the header that it is sent in.
    """
    first, *others = line.split(b";")
    name, equals, value = first.partition(b"=")
    name, value = name.strip(b" \t"), value.strip(b" \t")
    if not name or not equals or len(name) + len(value) > LONGEST_COOKIE_BYTES:
        return None
    if len(line.translate(None, _CONTROLS)) != len(line):
        return None
    attributes: dict[bytes, bytes] = {}
    for each in others:
        key, _, content = each.partition(b"=")
        content = content.strip(b" \t")
        if len(content) <= LONGEST_ATTRIBUTE_BYTES:
            attributes[key.strip(b" \t").lower()] = content
    return _decode(name), _decode(b"%b=%b" % (name, value)), attributes


def _breaks_prefix(name: str, attributes: dict[bytes, bytes], place: _Place) -> bool:
    """Whether a cookie lacks what the prefix of its name promises (RFC 6265bis, section 4.1.3)."""
    is_secure = place.is_secure and b"secure" in attributes
    if name.startswith("__host-"):
        return not is_secure or attributes.get(b"path") != b"/" or bool(attributes.get(b"domain"))
    return name.startswith("__secure-") and not is_secure


def _find_end_s(attributes: dict[bytes, bytes], now_s: float) -> float:
    """When a cookie expires: `Max-Age` overrides `Expires`; malformed values are ignored."""
    age = attributes.get(b"max-age", b"")
    if age.removeprefix(b"-").isdigit():
        return now_s + float(age)  # infinite if it has very many digits
    ends_s = parse_date(attributes.get(b"expires", b""))
    return _NEVER if ends_s is None else ends_s


@lru_cache(256)
def _parse_url(url: str) -> _Place:
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    target = rest.partition("#")[0].partition("?")[0]
    authority, _, path = target.partition("/")
    authority = authority.rpartition("@")[2].lower()
    if not authority.isascii():
        authority = URL(f"{scheme}://{authority}").raw_authority
    authority = authority.removesuffix(":443" if scheme == "https" else ":80")
    host = authority.partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
    return _Place(scheme == "https", authority, host.lstrip("["), f"/{path}")


def _name_origin(place: _Place) -> str:
    """The origin, as a key; no name of a host is like it."""
    return f"{'https' if place.is_secure else 'http'}://{place.authority}"


@lru_cache(256)
def _list_domains(host: str) -> tuple[str, ...]:
    """A host, and the domains that it is in; an address is in none (section 5.1.3)."""
    if ":" in host or not host.strip("0123456789."):
        return (host,)
    domains = [host]
    while "." in host:
        host = host.partition(".")[2]
        if host:
            domains.append(host)
    return tuple(domains)


def _find_default_path(path: str) -> str:
    """The default path of a cookie (section 5.1.4): the path of the request up to its last `/`."""
    return path[: path.rfind("/")] or "/"


def _matches_path(path: str, cookie_path: str) -> bool:
    """Whether a cookie with a path belongs to a request (section 5.1.4)."""
    return path.startswith(cookie_path) and (
        len(path) == len(cookie_path) or cookie_path.endswith("/") or path[len(cookie_path)] == "/"
    )


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")

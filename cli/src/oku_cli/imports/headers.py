"""Which headers a spec needs, and which values must not stand in a file."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit, urlunsplit

from oku_cli.imports.imported_spec import LiteralText, encode_braces
from oku_core.spec.values.request_content import Header, asks_to_close

_FRAMING = frozenset({"transfer-encoding", "upgrade", "http2-settings", "te", "expect", "trailer"})
"""Headers that would frame the request or use the connection in another way than an engine does."""
_OF_THE_ENGINE = _FRAMING | {"content-length", "connection", "keep-alive", "proxy-connection"}
"""Headers that an engine sets by itself, or that belong to one connection."""
_OF_A_BROWSER = frozenset({
    "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "priority", "dnt",
    "upgrade-insecure-requests", "save-data", "purpose", "x-client-data", "host",
})  # fmt: skip
"""What a browser adds for its cache and its own purposes; a conditional request would be answered by 304."""
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
_SECRET_NAME = re.compile(
    r"token|secret|api[-_]?key|apikey|session|csrf|xsrf|passw|signature|credential|(?:^|[-_])auth(?:$|[-_])",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?P<scheme>Basic|Bearer|Token|Digest)\s+(?=\S)", re.IGNORECASE)


_OWN = "IMPORTED_"
"""Begins each variable whose name others chose, so that an import never names a variable of the user."""
_STANDARD = frozenset({*_SECRET_HEADERS, "url_user", "url_password"})
"""Names that are the same in every import."""


class SecretBox:
    """Puts placeholders in the place of secrets, and remembers their names.

    Args:
        keeps: whether secrets are left where they are.

    Attributes:
        literal: escapes the other text.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self.literal = LiteralText()
        self._names: dict[tuple[str, str], str] = {}
        self._alike: Counter[str] = Counter()

    @property
    def names(self) -> Sequence[str]:
        """The names of the variables that stand for secrets."""
        return list(self._names.values())

    def hide_header(self, name: str, value: str) -> str:
        """The value of a header, without possible secrets; the scheme of an authorization stays."""
        is_secret = name.lower() in _SECRET_HEADERS or _SECRET_NAME.search(name)
        if self._keeps or not is_secret or not value:
            return self.literal.write(value, f"header {name}")
        scheme = _SCHEME.match(value)
        begin = scheme[0] if scheme and name.lower().endswith("authorization") else ""
        return begin + self._hide(name, value[len(begin) :])

    def hide_query(self, url: str) -> str:
        """A URL without secrets in its query, without its user and its password."""
        parts, write = urlsplit(url), self.literal.write_url
        pairs = [pair.partition("=") for pair in parts.query.split("&")] if parts.query else []
        query = "&".join(
            f"{write(name)}={self._hide(name, value)}"
            if value and _SECRET_NAME.search(name)
            else write(name + sign + value)
            for name, sign, value in pairs
        )
        credentials, at, host = parts.netloc.rpartition("@")
        user, colon, password = encode_braces(credentials).partition(":")
        # Each by itself, for a colon in a secret is not the one between them.
        netloc = f"{self._hide('url_user', user)}{colon}{self._hide('url_password', password)}{at}{host}"
        return urlunsplit((parts.scheme, netloc, write(parts.path), query, ""))

    def stand_for(self, name: str, value: str = "") -> str:
        """The placeholder of a secret.

        Args:
            name: what others call it.
            value: the secret; empty if it is not known.
        """
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper()
        plain = plain if name.lower() in _STANDARD else f"{_OWN}{plain or 'SECRET'}"
        key = (plain, value)
        if key not in self._names:
            self._alike[plain] += 1
            alike = self._alike[plain]
            self._names[key] = f"{plain}_{alike}" if alike > 1 else plain
        return f"{{env:{self._names[key]}}}"

    def _hide(self, name: str, value: str) -> str:
        """The text for a secret in a URL or a header: a placeholder, unless secrets are kept."""
        if self._keeps or not value:
            return self.literal.write_url(value)
        return self.stand_for(name, value)


def choose_headers(
    headers: Iterable[tuple[str, str]], *, is_browser: bool = False, is_http2: bool = False
) -> list[tuple[str, str]]:
    """The headers that a spec needs.

    Args:
        headers: names and values.
        is_browser: whether a browser has sent them.
        is_http2: whether they are sent over HTTP/2, where `TE: trailers` belongs to a request: gRPC sends it.
    """
    return [
        (name, value)
        for name, value in headers
        if (name.lower() not in _OF_THE_ENGINE or (is_http2 and _is_te_trailers(name, value)))
        and not name.startswith(":")
        and not (is_browser and (name.lower() in _OF_A_BROWSER or name.lower().startswith("sec-")))
    ]


def list_dropped(headers: Iterable[tuple[str, str]], *, is_http2: bool) -> list[str]:
    """The names of headers that are left out although the target would notice, in order."""
    return [
        name
        for name, value in headers
        if name.lower() in _FRAMING and not (is_http2 and _is_te_trailers(name, value))
    ]


def closes_connection(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether they ask to close the connection after each request."""
    return asks_to_close(Header(f"{name}: {value}") for name, value in headers)


def _is_te_trailers(name: str, value: str) -> bool:
    return (name.lower(), value.strip().lower()) == ("te", "trailers")

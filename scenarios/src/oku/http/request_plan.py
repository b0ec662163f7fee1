"""Plans of requests, made once for each method and URL: the origin, and the constant parts of the head."""

import re
from collections.abc import Collection, Mapping
from urllib.parse import quote

from oku.http.outbound_connection import ClientOrigin
from oku_core.data.data_format import INDEX_NAME
from oku_core.errors import format_value
from oku_core.http_client.request_head import (
    REQUEST_LINE_END,
    build_line_start,
    build_origin,
    build_target,
    check_header,
)
from oku_core.process.redaction import redact
from oku_core.spec.values.template import NAMED_PLACEHOLDER, read_literally
from oku_core.spec.values.url import Url, is_absolute, join_url

_MALFORMED = re.compile(r"[\r\n\0]")
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class RequestPlan:
    """A method and a URL as a scenario writes them, taken apart once.

    Args:
        method: in upper case.
        url: absolute.
        columns: those that placeholders in it may stand for.
        origin: of the URL.

    Attributes:
        method: as given.
        url: as given, with its placeholders.
        origin: as given.
        place: scheme, host and port of the URL, with its user and password.
        has_credentials: whether it has any of the last two.
        line: the request line, if it has no placeholder; else None.

    Raises:
        ValueError: this is not a method or a URL.
    """

    __slots__ = (
        "_names", "_start", "_texts", "has_credentials", "line", "method", "origin", "place", "url",
    )  # fmt: skip

    def __init__(self, method: str, url: Url, columns: Collection[str], origin: ClientOrigin) -> None:
        if not _METHOD.fullmatch(method):
            raise ValueError(f"{_show(method)} is not a method")
        self.method, self.url = method, url
        self.place = build_origin(url)
        self.has_credentials = self.place.user is not None or self.place.password is not None
        self.origin = origin
        target = build_target(url)
        text = f"{target.path}?{target.query}" if target.query else target.path
        self._start = build_line_start(method, self.place, origin.proxy)
        self._texts, self._names = _split(text, {INDEX_NAME, *columns})
        self.line = None if self._names else self.build_line(None, {})

    def build_line(self, index: int | None, row: Mapping[str, str], query: str = "") -> bytes:
        """The request line of one request.

        Args:
            index: of its iteration; None outside of iterations.
            row: of its iteration.
            query: is added to the URL's query.

        Raises:
            ValueError: the URL has a placeholder that stands for nothing here.
        """
        return f"{self._start}{self.build_target(index, row, query)}{REQUEST_LINE_END}".encode()

    def build_target(self, index: int | None, row: Mapping[str, str], query: str = "") -> str:
        """Path and query of one request."""
        texts, target = self._texts, self._texts[0]
        for place, name in enumerate(self._names, start=1):
            target += self._fill(name, index, row) + texts[place]
        if query:
            target += f"{'&' if '?' in target else '?'}{query}"
        return target

    def build_url(self, index: int | None, row: Mapping[str, str], query: str = "") -> str:
        """The whole URL of one request, without user and password."""
        return (
            f"{self.url.scheme}://{self.place.host_port_subcomponent}{self.build_target(index, row, query)}"
        )

    def _fill(self, name: str, index: int | None, row: Mapping[str, str]) -> str:
        if name != INDEX_NAME and name in row:
            return quote(row[name], safe="")
        if name != INDEX_NAME or index is None:
            shown = redact(self.url, queries=False)
            raise ValueError(f"{shown} has {{{name}}} in it, which there is only in an iteration")
        return str(index)


def _split(text: str, known: Collection[str]) -> tuple[list[str], list[str]]:
    """The texts around the placeholders that are known, and the names of these."""
    texts, names = [""], []
    for place, piece in enumerate(NAMED_PLACEHOLDER.split(text)):
        if place % 2 and piece in known:
            names.append(piece)
            texts.append("")
        else:
            texts[-1] += f"{{{piece}}}" if place % 2 else piece
    return list(map(read_literally, texts)), names


def build_plan_url(base: Url | None, url: str) -> Url:
    """The URL of a request, behind the base URL if it needs one.

    Raises:
        ValueError: it is not a URL of http or https, or there is no base URL for it.
    """
    if _MALFORMED.search(url) or not url.isprintable() or " " in url:
        raise ValueError(f"{_show(url)} has whitespace or control characters, write %20 for a blank")
    if not is_absolute(url):
        if not url.startswith(("/", "?")):
            raise ValueError(f"{_show(url)} is neither a whole URL nor a path that begins with /")
        if base is None:
            raise ValueError(f"{_show(url)} begins with a path, but there is no base URL: give --host URL")
    built = join_url(base, url.partition("#")[0])
    if built.scheme not in ("http", "https") or not built.host:
        raise ValueError(f"{_show(url)} is not a URL of http or https with a host")
    return built


def _show(text: str) -> str:
    return format_value(redact(text, queries=False))  # before it is cut


def check_value(name: str, value: object) -> str:
    """The value of a header as text, bytes byte by byte; `ValueError` if it would end where it must not."""
    if not _METHOD.fullmatch(name):
        raise ValueError(f"{_show(name)} is not the name of a header")
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes | bytearray) else str(value)
    check_header(name, text)
    return text

"""The URLs of a spec: which ones a user may write, and the parts that every engine needs."""

import re
from typing import Self
from urllib.parse import urlsplit

from oku_core.errors import format_value
from oku_core.process.redaction import redact
from oku_core.spec.values.scalar import list_given, parse_text
from oku_core.spec.values.template import (
    LITERAL_MARK,
    LITERAL_TEXT,
    NAMED_PLACEHOLDER,
    SECRET_PLACEHOLDER,
    check_secrets,
    describe_unknown,
)

_ANY_ORIGIN = "http://h"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LONGEST_HOST = 253
"""In characters (RFC 1035, section 2.3.4); to encode a much longer one takes minutes."""
_STRAY_BRACE = re.compile(r"\{[^}]*\}?|\}")


class Url(str):
    """A URL; as a string, it is the text that the user wrote, with its placeholders.

    Attributes:
        scheme: the scheme in lower case.
        authority: the user, host and port.
        host: the host in lower case; empty if the URL has none.
        path: the path as the user wrote it; it may be empty.
        query: the query as the user wrote it, without the question mark.
    """

    __slots__ = ("authority", "host", "path", "query", "scheme")
    scheme: str
    authority: str
    host: str
    path: str
    query: str

    def __new__(cls, text: str) -> Self:
        """Split the text, without any other check; raise `ValueError` if it cannot be split."""
        url, parts = super().__new__(cls, text), urlsplit(text)
        url.scheme, url.authority, url.path, url.query = parts.scheme, parts.netloc, parts.path, parts.query
        url.host = parts.hostname or ""
        return url


def parse_urls(value: object) -> tuple[Url, ...]:
    """Parse one URL or several: `http` or `https`, `{i}` only in path and query, no secret in the host."""
    return tuple(_parse_url(parse_text(item)) for item in list_given(value, "URL"))


def parse_base_url(value: object) -> Url:
    """Parse the base URL of targets: a URL without a query and without the index."""
    url = _parse_url(parse_text(value))
    named = NAMED_PLACEHOLDER.search(url)
    for part in ("?", named[0] if named else None):
        if part is not None and part in url:
            shown = format_value(redact(url, queries=False))
            raise ValueError(f"{shown} has {part} in it; a base URL has scheme, host, port and path")
    return url


def parse_reference(value: object) -> str:
    """Parse the URL of a target: a whole one, or path and query to put behind a base URL."""
    text = parse_text(value)
    if is_absolute(text):
        return str(_parse_url(text))
    if not text.startswith(("/", "?")):
        shown = format_value(redact(text, queries=False))
        raise ValueError(f"{shown} is neither a whole URL nor a path that begins with /")
    _parse_url(f"{_ANY_ORIGIN}{text}", format_value(text))
    return text


def is_absolute(reference: str) -> bool:
    """Whether the URL of a target has a host."""
    return _SCHEME.match(reference) is not None


def join_url(base: Url | None, reference: str) -> Url:
    """The URL of a target, behind the base URL if it needs one; `ValueError` if there is none."""
    if is_absolute(reference):
        return Url(reference)
    if base is None:
        raise ValueError(f"{format_value(reference)} begins with a path, but there is no base URL")
    return Url(f"{base.rstrip('/') if reference.startswith('/') else base}{reference}")


def parse_proxy(value: object) -> Url:
    """Parse the URL of an HTTP proxy: the scheme `http` and a host, optionally a port and a user."""
    url = _parse_url(parse_text(value))
    if url.scheme != "http" or url.path not in ("", "/") or url.query:
        raise ValueError(
            f"{format_value(redact(url, queries=False))} is not a proxy such as http://proxy.example:3128"
        )
    return url


def _parse_url(text: str, shown: str = "") -> Url:
    shown = shown or format_value(redact(text, queries=False))
    if " " in text or not text.isprintable():
        raise ValueError(f"{shown} contains whitespace or control characters")
    if not _SCHEME.match(text):
        raise ValueError(f"{shown} has no scheme, write http://{format_value(text.lstrip(':/') or 'host/')}")
    check_secrets(text)
    authority = re.split(r"[/?#]", text.partition("://")[2], maxsplit=1)[0]
    if SECRET_PLACEHOLDER.search(authority.rpartition("@")[2]):
        raise ValueError(f"{shown} has a secret in its host; only user, path and query may have one")
    if LITERAL_MARK in authority:
        raise ValueError(f"{shown} has {LITERAL_MARK} before its path; only path and query may have it")
    public = SECRET_PLACEHOLDER.sub("0", LITERAL_TEXT.sub("0", text))
    _check_host(public, shown)
    if "#" in text:
        raise ValueError(f"{shown} has a fragment (#), which is never sent")
    if unknown := _STRAY_BRACE.search(NAMED_PLACEHOLDER.sub("0", public)):
        raise ValueError(describe_unknown(shown, unknown[0]))
    return Url(text)


def _check_host(text: str, shown: str) -> None:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        if len(host) > _LONGEST_HOST:
            raise ValueError(host)
        host.encode("idna")  # fails for a label that is empty or too long
    except ValueError as error:
        raise ValueError(f"{shown} has an invalid host") from error
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{shown} has the scheme {parts.scheme}; only http and https are supported")
    if not host:
        raise ValueError(f"{shown} has no host")
    if found := NAMED_PLACEHOLDER.search(parts.netloc):
        # With a host per index, the resolver and the connection pool would grow with the number of requests.
        raise ValueError(f"{shown} has {found[0]} in its host; only path and query may have it")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"{shown} has a port that is not between 1 and 65535")

"""What a user writes about the requests themselves: URLs, method, headers, expected statuses, text.

Every reader takes what a flag, a YAML or a JSON file gives and raises `ValueError` with one line that names
the value and what is allowed; `oku_core.spec.spec` adds the place.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from oku_core.errors import format_value
from oku_core.process.redaction import redact

INDEX_PLACEHOLDER = "{i}"
"""Stands for the index of the request in a URL, a header or a body."""

SECRET_PLACEHOLDER = re.compile(r"\{env:[A-Za-z_][A-Za-z0-9_]*\}|\{file:[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}\}")
"""Stands for a secret that only workers know: a variable of their environment, or a file of a folder."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PLACEHOLDER = re.compile(r"\{[^}]*\}?|\}")
# RFC 9110, sections 5.6.2 and 5.5: a token, and a value without control characters but the tab.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_STATUS = re.compile(r"[1-5](xx|[0-9][0-9])")
KNOWN_PLACEHOLDERS = "{i}, {env:NAME} and {file:NAME}"
"""For people."""
_SECRET_BEGINS = re.compile(r"\{(?:env|file):[^{}\s]*\}?")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse_urls(value: object) -> tuple[str, ...]:
    """One URL or several: `http` or `https`, `{i}` in path and query at most, secrets not in the host."""
    urls = tuple(_check_url(parse_text(item)) for item in _items(value))
    if not urls:
        raise ValueError("there is no URL")
    return urls


def parse_proxy(value: object) -> str:
    """The URL of an HTTP proxy: scheme `http`, host and port, a user perhaps."""
    url = _check_url(parse_text(value))
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.path not in ("", "/") or parts.query:
        raise ValueError(
            f"{format_value(redact(url, queries=False))} is not a proxy such as http://proxy.example:3128"
        )
    return url


def parse_headers(value: object) -> tuple[str, ...]:
    """`Name: value`, once or several times, or a mapping of names to values."""
    if isinstance(value, Mapping):
        headers = tuple(f"{parse_text(name)}: {_parse_scalar(content)}" for name, content in value.items())
    else:
        headers = tuple(parse_text(item) for item in _items(value))
    for header in headers:
        _check_header(header)
    return headers


def parse_method(value: object) -> str:
    """The name of an HTTP method, in upper case."""
    method = parse_text(value)
    if not re.fullmatch(r"[A-Za-z]+", method) or method.upper() == "CONNECT":
        raise ValueError(f"{format_value(value)} is not a method such as GET or POST")
    return method.upper()


def parse_expect_status(value: object) -> tuple[str, ...]:
    """Statuses and hundreds of statuses, in a list or with commas: `200,404`, `2xx`."""
    texts = [_parse_scalar(item) for item in _items(value)]
    statuses = tuple(part.strip().lower() for text in texts for part in text.split(","))
    if not statuses:
        raise ValueError("there is no status")
    for status in statuses:
        if not _STATUS.fullmatch(status):
            raise ValueError(f"{format_value(status)} is not a status such as 200 or 2xx")
    return statuses


def parse_text(value: object) -> str:
    """Any text that can be sent."""
    if not isinstance(value, str):
        hint = ", put it in quotes" if isinstance(value, int | float) else ""
        raise ValueError(f"{format_value(value)} is not text{hint}")  # noqa: TRY004  # wrong input, no wrong call
    if _SURROGATE.search(value):
        raise ValueError(f"{format_value(value)} has characters that UTF-8 cannot write")
    return value


def parse_body(value: object) -> str:
    """Any text, with placeholders or without."""
    body = parse_text(value)
    _check_secrets(body)
    return body


def _check_secrets(text: str) -> None:
    for found in _SECRET_BEGINS.finditer(text):
        if not SECRET_PLACEHOLDER.fullmatch(found[0]):
            raise ValueError(
                f"{format_value(found[0])} is not of the form {{env:NAME}} or {{file:NAME}}, with a name of "
                "letters, digits and _, of a file also . and -"
            )


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _parse_scalar(value: object) -> str:
    """Text, or what YAML takes for a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else parse_text(value)


def _check_header(header: str) -> None:
    name, colon, content = header.partition(":")
    if not name or not colon:
        raise ValueError(f"{format_value(header)} is not of the form 'Name: value'")
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"{format_value(name)} is not a header name, of ASCII letters, digits and -")
    if not _HEADER_VALUE.fullmatch(content):
        raise ValueError(f"{format_value(header)} has line breaks or control characters in its value")
    _check_secrets(content)


def _check_url(url: str) -> str:
    shown = format_value(redact(url, queries=False))
    if " " in url or not url.isprintable():
        raise ValueError(f"{shown} has white space or control characters in it")
    if not _SCHEME.match(url):
        raise ValueError(f"{shown} has no scheme, write http://{format_value(url.lstrip(':/') or 'host/')}")
    _check_secrets(url)
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    if SECRET_PLACEHOLDER.search(authority.rpartition("@")[2]):
        raise ValueError(f"{shown} has a secret in its host, it may stand in user, path and query")
    written, url = url, SECRET_PLACEHOLDER.sub("0", url)
    _check_host(url, shown)
    if "#" in url:
        raise ValueError(f"{shown} has a fragment (#), which is never sent")
    if unknown := _PLACEHOLDER.search(url.replace(INDEX_PLACEHOLDER, "0")):
        name = format_value(unknown[0])
        raise ValueError(f"{shown} has the placeholder {name}, known are {KNOWN_PLACEHOLDERS}")
    return written


def _check_host(url: str, shown: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")  # a label that is empty or too long has no address
    except ValueError as error:
        raise ValueError(f"{shown} has a host that cannot be") from error
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{shown} has the scheme {parts.scheme}, only http and https are known")
    if not host:
        raise ValueError(f"{shown} has no host")
    if INDEX_PLACEHOLDER in parts.netloc:
        # A host for each index would let resolver and connection pool grow with the number of requests.
        raise ValueError(f"{shown} has {INDEX_PLACEHOLDER} in its host, it may stand in path and query")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"{shown} has a port that is not between 1 and 65535")

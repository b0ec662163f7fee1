"""Reads a curl command, as a person types it or a browser copies it."""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote_plus

from oku_cli.imports.curl_flags import VERSIONS, CurlFlag, read_flags
from oku_cli.imports.headers import choose_headers
from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec
from oku_cli.imports.shell_words import split_words
from oku_core.digits import parse_digits
from oku_core.spec.fields import FIELD_BY_KEY
from oku_core.spec.files import TLS_FILE_KEYS

ReadFile = Callable[[str], str]

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_HTTP3 = "--http3"
_REDIRECTS = 50
"""As many as curl follows."""
_DATA = frozenset({"data", "data-ascii", "data-raw", "data-binary", "data-urlencode", "json"})
_HEADER_BY_FLAG = {"user-agent": "User-Agent", "referer": "Referer"}


def read_curl(command: str, read_file: ReadFile) -> ImportedSpec:
    """Read a command.

    Args:
        command: as a shell gets it, in one line or several.
        read_file: reads a file that the command names.

    Raises:
        ValueError: it is not a curl command, or says what a spec cannot.
    """
    words = split_words(command)
    if not words or words[0].rpartition("/")[2] not in ("curl", "curl.exe"):
        raise ValueError("it does not begin with curl")
    flags, ignored = read_flags(words[1:])
    urls = [_complete_url(flag.value) for flag in flags if flag.name == "url"]
    if not urls:
        raise ValueError("it has no URL")
    notes = list(_describe_ignored(ignored))
    names = {flag.name for flag in flags}
    body = _build_body(flags, read_file)
    if body is not None and "get" in names:
        urls = [f"{url}{'&' if '?' in url else '?'}{body}" for url in urls]
        body = None
    settings = _build_settings(flags, names)
    if version := _find_http2(flags):
        notes += _add_http2(settings, version, urls)
    headers = _build_headers(flags, names, has_body=body is not None, is_http2="http2" in settings)
    method = _choose_method(flags, names, has_body=body is not None)
    requests = [ImportedRequest(url=url, method=method, headers=headers, body=body) for url in urls]
    return ImportedSpec(source="curl", requests=requests, settings=settings, notes=notes)


def _describe_ignored(flags: Sequence[str]) -> Iterator[str]:
    if others := [flag for flag in flags if flag != _HTTP3]:
        yield f"Ignored, as it does not change what is sent: {', '.join(others)}."
    if _HTTP3 in flags:
        yield f"Not sent as HTTP/3, which Oku does not speak: {_HTTP3}."


def _find_http2(flags: Iterable[CurlFlag]) -> str:
    """The flag that asks for HTTP/2; empty if none does."""
    versions = [flag.name for flag in flags if flag.name in VERSIONS]
    return versions[-1] if versions and versions[-1] != "http1.1" else ""


def _add_http2(settings: dict[str, Any], version: str, urls: Iterable[str]) -> Iterator[str]:
    """Have HTTP/2 spoken if that goes with the other settings; what there is to be said of it."""
    if others := [key for key in settings if key == "keepalive" or FIELD_BY_KEY[key].aiohttp_only]:
        yield f"Sent as HTTP/1.1, for HTTP/2 cannot be combined with {', '.join(others)}: --{version}."
        return
    settings["http2"] = True
    if version == "http2" and any(url.lower().startswith("http:") for url in urls):
        yield "In clear text, HTTP/2 is spoken from the beginning, as with --http2-prior-knowledge."


def _complete_url(url: str) -> str:
    return (url if "://" in url else f"http://{url}").partition("#")[0]


def _choose_method(flags: Iterable[CurlFlag], names: set[str], *, has_body: bool) -> str:
    given = [flag.value for flag in flags if flag.name == "request"]
    if given:
        return given[-1].upper()
    if "head" in names:
        return "HEAD"
    return "POST" if has_body else "GET"


def _build_body(flags: Iterable[CurlFlag], read_file: ReadFile) -> str | None:
    parts: list[str] = []
    for flag in flags:
        if flag.name in _DATA:
            part = _read_data(flag, read_file)
            # JSON is joined as it is, everything else as the fields of a form.
            if parts and flag.name == "json":
                parts[-1] += part
            else:
                parts.append(part)
    return "&".join(parts) if parts else None


def _read_data(flag: CurlFlag, read_file: ReadFile) -> str:
    if flag.name == "data-raw":
        return flag.value
    if flag.name == "data-urlencode":
        return _encode(flag.value, read_file)
    if not flag.value.startswith("@"):
        return flag.value
    content = read_file(flag.value[1:])
    keeps_lines = flag.name in ("data-binary", "json")
    return content if keeps_lines else content.replace("\r", "").replace("\n", "")


def _encode(value: str, read_file: ReadFile) -> str:
    """`content`, `=content`, `name=content`, `@file` or `name@file`, of which the content is encoded."""
    name, sign, content = value.partition("=")
    if not sign:
        name, at, file = value.partition("@")
        if not at:
            return quote_plus(value)
        content = read_file(file)
    return f"{name}={quote_plus(content)}" if name else quote_plus(content)


def _build_headers(
    flags: Sequence[CurlFlag], names: set[str], *, has_body: bool, is_http2: bool
) -> list[tuple[str, str]]:
    """What curl sends for its flags, unless `-H` gives a header of the same name or takes it away."""
    implied = [*_list_implied(names, has_body=has_body), *filter(None, map(_find_header, flags))]
    given = [_read_header(flag.value) for flag in flags if flag.name == "header"]
    replaced = {name.lower() for name, _, _ in given}
    kept = {name.lower(): (name, value) for name, value in implied if name.lower() not in replaced}
    sent = [(name, value) for name, value, is_sent in given if is_sent]
    # A host that is asked for by name is that of another site at the same address.
    hosts = [each for each in sent if each[0].lower() == "host"]
    return [*hosts, *choose_headers([*kept.values(), *sent], is_http2=is_http2)]


def _list_implied(names: set[str], *, has_body: bool) -> Iterator[tuple[str, str]]:
    if has_body:
        yield "Content-Type", _JSON if "json" in names else _FORM
    if "json" in names:
        yield "Accept", _JSON
    if "compressed" in names:
        yield "Accept-Encoding", "gzip, deflate"


def _find_header(flag: CurlFlag) -> tuple[str, str] | None:
    """The header that a flag stands for."""
    match flag:
        case CurlFlag("user-agent" | "referer", value):
            return _HEADER_BY_FLAG[flag.name], value
        case CurlFlag("user", value):
            return "Authorization", f"Basic {base64.b64encode(value.encode()).decode()}"
        case CurlFlag("oauth2-bearer", value):
            return "Authorization", f"Bearer {value}"
        case CurlFlag("range", value):
            return "Range", f"bytes={value}"
        case CurlFlag("cookie", value):
            if "=" not in value:
                raise ValueError(f"-b: {value} is a file of cookies; write them as NAME=VALUE")
            return "Cookie", value
    return None


def _read_header(text: str) -> tuple[str, str, bool]:
    """Name, value, and whether it is sent: `Name:` takes a header of curl's away, `Name;` is empty."""
    if text.startswith("@"):
        raise ValueError(f"-H: {text} is a file of headers; write them as 'NAME: VALUE'")
    name, colon, value = text.partition(":")
    if not colon:
        return text.rstrip(";"), "", text.endswith(";")
    return name.strip(), value.strip(), bool(value.strip())


def _build_settings(flags: Iterable[CurlFlag], names: set[str]) -> dict[str, Any]:
    values = {flag.name: flag.value for flag in flags}
    settings: dict[str, Any] = {key: values[key] for key in TLS_FILE_KEYS if key in values}
    if "max-time" in values:
        settings["timeout"] = f"{values['max-time']}s"
    if "proxy" in values:
        settings["proxy"] = values["proxy"] if "://" in values["proxy"] else f"http://{values['proxy']}"
    if "insecure" in names:
        settings["insecure"] = True
    if "no-keepalive" in names:
        settings["keepalive"] = False
    if "location" in names:
        redirects = values.get("max-redirs", str(_REDIRECTS))
        settings["max-redirects"] = 100 if (count := parse_digits(redirects)) is None else count
    return settings

"""Reads a curl command, as a person types it or a browser copies it."""

import base64
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oku_cli.imports.curl.curl_body import ReadFile, build_body, encode_pair
from oku_cli.imports.curl.curl_flags import VERSIONS, CurlFlag, read_flags
from oku_cli.imports.curl.shell_words import split_words
from oku_cli.imports.headers import choose_headers, closes_connection, list_dropped
from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec
from oku_core.digits import parse_digits
from oku_core.errors import format_value
from oku_core.spec.fields import FIELD_BY_KEY
from oku_core.spec.files import TLS_FILE_KEYS
from oku_core.spec.spec import Engine
from oku_core.spec.values.request_content import DEFAULT_HEADERS, JSON_TYPE

_HTTP3 = "--http3"
_REDIRECTS = 50
"""As many as curl follows."""
_GLOB = re.compile(r"\{|\[[^\[\]-]*-")
"""Begins what curl expands, `{a,b}` or `[1-3]`; an address of IPv6 has no dash."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CERTIFICATE = re.compile(r"((?:[^:\\]|\\.)*+\\?):?(.*)", re.DOTALL)
"""What `-E` names, and the password behind a colon; `\\:` is a colon of the name."""
_AUTO = ";auto"
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")


def read_curl(command: str, read_file: ReadFile) -> ImportedSpec:
    """Read a command.

    Args:
        command: as a shell gets it, in one line or several.
        read_file: reads a file that the command names.

    Raises:
        ValueError: it is not a curl command, or uses a flag without a counterpart in a spec.
    """
    words = split_words(command)
    if not words or words[0].replace("\\", "/").split("/")[-1] not in ("curl", "curl.exe"):
        raise ValueError("it does not begin with curl; browsers copy such a command as cURL (bash)")
    flags, ignored = read_flags(words[1:])
    values = {flag.name: flag.value for flag in flags}
    urls = [_complete_url(flag.value, values) for flag in flags if flag.name == "url"]
    if not urls:
        raise ValueError("it has no URL")
    body, body_type = build_body(flags, read_file)
    query = _build_query(flags, read_file)
    if body is not None and "get" in values:
        if query:
            raise ValueError("--url-query: curl sends no query of its own together with --get")
        query, body = body, None
    if query:
        urls = [f"{url}{'&' if '?' in url else '?'}{query}" for url in urls]
    headers = _build_headers(flags, values, body_type if body is not None else "")
    settings = _build_settings(values, headers)
    notes = list(_describe_ignored(ignored))
    if version := _find_http2(flags):
        notes += _add_http2(settings, version, urls)
    is_http2 = "http2" in settings
    notes += _describe_headers(flags, list_dropped(headers, is_http2=is_http2), has_body=body is not None)
    headers = choose_headers(headers, is_http2=is_http2)
    method = _choose_method(values, has_body=body is not None)
    requests = [ImportedRequest(url=url, method=method, headers=headers, body=body) for url in urls]
    return ImportedSpec(source="curl", requests=requests, settings=settings, notes=notes)


def _describe_ignored(flags: Sequence[str]) -> Iterator[str]:
    if others := [flag for flag in flags if flag != _HTTP3]:
        yield f"Ignored, as it does not change what is sent: {', '.join(others)}."
    if _HTTP3 in flags:
        yield f"Not sent as HTTP/3, which Oku does not speak: {_HTTP3}."


def _describe_headers(flags: Sequence[CurlFlag], dropped: Sequence[str], *, has_body: bool) -> Iterator[str]:
    """Name the headers that are left out, and headers that are sent although curl removes them."""
    if dropped:
        yield f"Left out, as Oku frames requests by itself: {', '.join(dropped)}."
    given = [_read_header(flag.value) for flag in flags if flag.name == "header"]
    removed = [name.title() for name, _, is_sent in given if not is_sent]
    removed += ["User-Agent" for flag in flags if flag == CurlFlag("user-agent", "")]
    always = {*DEFAULT_HEADERS, *(["Content-Type"] if has_body else [])}
    if own := [name for name in removed if name in always]:
        yield f"Sent all the same, as Oku always sends it: {', '.join(own)}."
    if any(flag.name == "referer" and _AUTO in flag.value for flag in flags):
        yield f"Redirects are followed without a Referer of their own: -e {_AUTO}."


def _find_http2(flags: Iterable[CurlFlag]) -> str:
    """The flag that asks for HTTP/2; empty if none does."""
    versions = [flag.name for flag in flags if flag.name in VERSIONS]
    return versions[-1] if versions and versions[-1] != "http1.1" else ""


def _add_http2(settings: dict[str, Any], version: str, urls: Iterable[str]) -> Iterator[str]:
    """Use HTTP/2 if that goes with the other settings; yields the notes on it."""
    if others := [key for key in settings if Engine.NGHTTP2 in FIELD_BY_KEY[key].refusals]:
        yield f"Sent as HTTP/1.1, for HTTP/2 cannot be combined with {', '.join(others)}: --{version}."
        return
    settings["http2"] = True
    if version == "http2" and any(url.lower().startswith("http:") for url in urls):
        yield "In clear text, HTTP/2 is spoken from the beginning, as with --http2-prior-knowledge."


def _complete_url(url: str, names: Container[str]) -> str:
    """A URL with a scheme and without a fragment."""
    if "globoff" not in names and _GLOB.search(url):
        raise ValueError(f"{format_value(url)} stands for other URLs: give them one by one, or -g")
    url = (url if _SCHEME.match(url) else f"http://{url}").partition("#")[0]
    if "path-as-is" not in names and _DOT_SEGMENT.search(url.partition("?")[0]):
        raise ValueError(f"{format_value(url)} has dots that curl takes out: leave them out, or --path-as-is")
    return url


def _choose_method(values: Mapping[str, str], *, has_body: bool) -> str:
    if (method := values.get("request")) is not None:
        if method != method.upper():
            raise ValueError(f"-X: {method} is sent as it is by curl, but in upper case by Oku: write that")
        return method
    if "head" in values:
        return "HEAD"
    return "POST" if has_body else "GET"


def _build_query(flags: Iterable[CurlFlag], read_file: ReadFile) -> str:
    """What `--url-query` adds: encoded as by `--data-urlencode`, and as it is behind a plus."""
    texts = [flag.value for flag in flags if flag.name == "url-query"]
    return "&".join(text[1:] if text.startswith("+") else encode_pair(text, read_file) for text in texts)


def _build_headers(
    flags: Sequence[CurlFlag], values: Mapping[str, str], body_type: str
) -> list[tuple[str, str]]:
    """What curl sends for its flags, unless `-H` gives a header of the same name or takes it away."""
    cookies = "; ".join(_read_cookies(flag.value) for flag in flags if flag.name == "cookie" and flag.value)
    implied = [*_list_implied(values, body_type), ("Cookie", cookies)]
    given = [_read_header(flag.value) for flag in flags if flag.name == "header"]
    if body_type.startswith("multipart/"):
        given = [_add_boundary(header, body_type) for header in given]
    replaced = {name.lower() for name, _, _ in given}
    kept = [(name, value) for name, value in implied if value and name.lower() not in replaced]
    return [*kept, *((name, value) for name, value, is_sent in given if is_sent)]


def _add_boundary(header: tuple[str, str, bool], form_type: str) -> tuple[str, str, bool]:
    """A header of a form, whose content type gets a boundary from curl as well."""
    name, value, is_sent = header
    if name.lower() != "content-type" or not is_sent:
        return header
    if "boundary" in value.lower():
        raise ValueError(f"-H: {name}: {value}: leave the boundary out, it is that of the form")
    return name, f"{value};{form_type.partition(';')[2]}", is_sent


def _list_implied(values: Mapping[str, str], body_type: str) -> Iterator[tuple[str, str]]:
    """The headers that flags stand for; one of a flag without a value is empty, and not sent."""
    yield "Content-Type", body_type
    if "json" in values:
        yield "Accept", JSON_TYPE
    if "compressed" in values:
        yield "Accept-Encoding", "gzip, deflate"
    yield "User-Agent", values.get("user-agent", "")
    yield "Referer", values.get("referer", "").partition(_AUTO)[0]
    if "range" in values:
        yield "Range", f"bytes={values['range']}"
    if "oauth2-bearer" in values:
        yield "Authorization", f"Bearer {values['oauth2-bearer']}"
    elif (user := values.get("user")) is not None:
        credentials = user if ":" in user else f"{user}:"
        yield "Authorization", f"Basic {base64.b64encode(credentials.encode()).decode()}"


def _read_cookies(value: str) -> str:
    if "=" not in value:
        raise ValueError(f"-b: {value} is a file of cookies; write them as NAME=VALUE")
    return value


def _read_header(text: str) -> tuple[str, str, bool]:
    """Name, value, and whether it is sent: `Name:` takes a header of curl's away, `Name;` is empty."""
    if text.startswith("@"):
        raise ValueError(f"-H: {text} is a file of headers; write them as 'NAME: VALUE'")
    name, colon, value = text.partition(":")
    if not colon:
        return text.rstrip(";"), "", text.endswith(";")
    return name.strip(), value.strip(), bool(value.strip())


def _read_certificate(value: str) -> str:
    found = _CERTIFICATE.fullmatch(value)
    if found is None or found[2]:
        raise ValueError("-E: there is a password behind the colon: use a key without one, or \\: in a name")
    return re.sub(r"\\([\\:])", r"\1", found[1])


def _build_settings(values: Mapping[str, str], headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    settings: dict[str, Any] = {key: values[key] for key in TLS_FILE_KEYS if key in values}
    if "cert" in values:
        settings["cert"] = _read_certificate(values["cert"])
    if values.get("max-time", "").strip("0."):  # 0 is no limit
        settings["timeout"] = f"{values['max-time']}s"
    if "proxy" in values:
        settings["proxy"] = values["proxy"] if "://" in values["proxy"] else f"http://{values['proxy']}"
    if "insecure" in values:
        settings["insecure"] = True
    if closes_connection(headers):
        settings["keepalive"] = False
    if "location" in values:
        redirects = values.get("max-redirs", str(_REDIRECTS))
        settings["max-redirects"] = 100 if (count := parse_digits(redirects)) is None else count
    return settings

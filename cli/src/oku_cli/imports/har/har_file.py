"""Reads a HAR file, in which a browser has recorded requests and their answers (HAR 1.2)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from oku_cli.imports.har.har_body import read_posted, read_value
from oku_cli.imports.headers import choose_headers, closes_connection
from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec, split_origin
from oku_core.json_reader import decode_document

_ASSET_TYPE = re.compile(
    r"image/|font/|audio/|video/|text/css|(?:text|application)/(?:x-)?javascript|application/font"
)
_ASSET_END = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|css|m?js|map|woff2?|ttf|otf|eot|mp[34]|webm|wasm)$", re.IGNORECASE
)
_VERSION = re.compile(r"(?:h|http/)([123])\b", re.IGNORECASE)
"""Browsers write HTTP/2, http/2.0 or h2."""
_REDIRECTED = (301, 302, 303, 307, 308)
_NOT_MODIFIED = 304
_SWITCHED = 101
_OK = 200
_HTTP2 = "HTTP/2"
_MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class HarChoice:
    """Which requests are taken.

    Attributes:
        include: parts of URLs of which one has to occur; empty for the URLs of the first page's host.
        exclude: parts of URLs that must not occur.
        assets: whether images, fonts, styles and scripts are taken.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    assets: bool = False


def read_har(content: bytes, choice: HarChoice) -> ImportedSpec:
    """Read a file; one request for each method and URL, weighted by how often it occurs.

    Raises:
        ValueError: it is not a HAR file, or no request is left.
    """
    entries = [entry for entry in _list_entries(content) if _is_request(entry)]
    if not entries:
        raise ValueError("no HTTP request is in it")
    main = _find_host(_url(next(filter(_is_page, entries), entries[0])))
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    left: Counter[str] = Counter()
    for entry in entries:
        if reason := _find_reason(entry, main, choice):
            left[reason] += 1
        else:
            groups[entry["request"]["method"].upper(), _url(entry)].append(entry)
    if not groups:
        raise ValueError(f"no request is left of {len(entries)}: {_describe_left(left)}")
    notes = [f"Left out: {_describe_left(left)}."] if left else []
    requests = [_build_request(method, url, same) for (method, url), same in groups.items()]
    taken = [entry for same in groups.values() for entry in same]
    versions = Counter(map(_find_version, taken))
    settings = {"keepalive": False} if all(map(_closes_connection, taken)) else {}
    if versions.keys() == {_HTTP2}:
        settings = {"http2": True}
    else:
        notes += _describe_versions(versions)
    return ImportedSpec(source="har", requests=requests, settings=settings, notes=notes)


def _list_entries(content: bytes) -> Sequence[Mapping[str, Any]]:
    entries = _read(decode_document(content), "log", "entries")
    if not isinstance(entries, list):
        raise ValueError("it has no log.entries, as a HAR file has")  # noqa: TRY004  # the input is wrong, not the call
    return entries


def _is_request(entry: Any) -> bool:
    """Whether an entry is a request: browsers also record data and what they blocked."""
    try:
        request = entry["request"]
        return bool(re.match(r"(?:http|ws)s?://[^/]", request["url"])) and bool(
            re.fullmatch("[A-Za-z]+", request["method"])
        )
    except (KeyError, TypeError):
        return False


def _is_page(entry: Mapping[str, Any]) -> bool:
    """Whether an entry may be the first page: it leads nowhere else, and is no socket."""
    return _read(entry, "response", "status") not in _REDIRECTED and _url(entry).startswith("http")


def _find_reason(entry: Mapping[str, Any], main: str, choice: HarChoice) -> str:
    """Why a request is not taken; empty if it is."""
    url = _url(entry)
    if url.startswith("ws") or _read(entry, "response", "status") == _SWITCHED:
        return "web sockets"
    if any(part in url for part in choice.exclude):
        return "excluded"
    if choice.include and not any(part in url for part in choice.include):
        return "not included"
    if not choice.include and _find_host(url) != main:
        return f"of {split_origin(url)}"
    if not choice.assets and _is_asset(entry, url):
        return "images, fonts, styles or scripts (--assets takes them)"
    return ""


def _is_asset(entry: Mapping[str, Any], url: str) -> bool:
    kind = _read(entry, "response", "content", "mimeType") or ""
    return bool(_ASSET_END.search(urlsplit(url).path) or _ASSET_TYPE.match(str(kind)))


def _closes_connection(entry: Mapping[str, Any]) -> bool:
    return closes_connection(_list_pairs(entry["request"].get("headers")))


def _find_version(entry: Mapping[str, Any]) -> str:
    """The version of HTTP of an answer; the version of the request may be only the browser's wish."""
    written = _read(entry, "response", "httpVersion") or _read(entry, "request", "httpVersion")
    found = _VERSION.match(str(written))
    return f"HTTP/{found[1]}" if found else ""


def _describe_versions(versions: Mapping[str, int]) -> Iterator[str]:
    """Note that requests are sent by another version of HTTP than the recorded one."""
    newer = [f"{name} ({versions[name]})" for name in (_HTTP2, "HTTP/3") if versions.get(name)]
    if newer:
        yield f"Sent as HTTP/1.1, but recorded over {', '.join(newer)}; http2: true sends all over HTTP/2."


def _build_request(method: str, url: str, entries: Sequence[Mapping[str, Any]]) -> ImportedRequest:
    request = entries[0]["request"]
    headers = _list_pairs(request.get("headers"))
    given = {name.lower(): value for name, value in headers}
    kind = given.get("content-type", "")
    posted = read_posted(request.get("postData"), kind)
    others = [read_posted(entry["request"].get("postData"), kind).body for entry in entries[1:]]
    several = any(body != posted.body for body in others)
    if posted.type and posted.type != kind:
        headers = [each for each in headers if each[0].lower() != "content-type"]
        headers.append(("Content-Type", posted.type))
    if "cookie" not in given and (cookies := _list_pairs(request.get("cookies"))):
        headers.append(("Cookie", "; ".join(f"{name}={value}" for name, value in cookies)))
    statuses = [_read(entry, "response", "status") for entry in entries]
    answered = [status for status in statuses if isinstance(status, int) and 200 <= status <= 599]
    expected = sorted({_OK if status == _NOT_MODIFIED else status for status in answered})
    return ImportedRequest(
        url=url,
        method=method,
        headers=_join_cookies(choose_headers(headers, is_browser=True)),
        body=posted.body,
        weight=len(entries),
        statuses=[] if expected in ([], [_OK]) else expected,
        notes=[*posted.notes, *(["it was sent with several bodies; this is the first"] if several else [])],
    )


def _join_cookies(headers: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Headers with all cookies in one: HTTP/2 may split them (RFC 9113, section 8.2.3)."""
    cookies = [value for name, value in headers if name.lower() == "cookie"]
    if len(cookies) < 2:
        return headers
    others = [each for each in headers if each[0].lower() != "cookie"]
    return [*others, ("Cookie", "; ".join(cookies))]


def _list_pairs(written: Any) -> list[tuple[str, str]]:
    """Names and values of a list of HAR; other items are passed over."""
    return [
        (str(each["name"]), read_value(each))
        for each in (written if isinstance(written, list) else ())
        if isinstance(each, Mapping) and {"name", "value"} <= each.keys()
    ]


def _read(entry: Any, *names: str) -> Any:
    for name in names:
        entry = entry.get(name) if isinstance(entry, Mapping) else None
    return entry


def _url(entry: Mapping[str, Any]) -> str:
    """The URL; some programs write its query apart from it."""
    request = entry["request"]
    url = str(request["url"]).partition("#")[0]
    query = "" if "?" in url else urlencode(_list_pairs(request.get("queryString")))
    return f"{url}?{query}" if query else url


def _find_host(url: str) -> str:
    """Host and port: a recording often begins with `http` and goes on with `https`."""
    return split_origin(url).rpartition("@")[2].rpartition("/")[2]


def _describe_left(left: Counter[str]) -> str:
    most = left.most_common(_MOST_NAMED)
    texts = [f"{count} {reason}" for reason, count in most]
    rest = sum(left.values()) - sum(count for _, count in most)
    return ", ".join([*texts, *([f"{rest} others"] if rest else [])])

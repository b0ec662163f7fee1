import json
import string
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.data.data_format import DataFormat
from oku_core.data.escape import IN_HEADER, IN_URL, Escape
from oku_core.data.row_reader import Value
from oku_core.data.scan import DataTable, Scan, Use, read_table, scan
from oku_core.http_client.request_head import build_origin
from oku_core.spec.data_file import describe_scan
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import Rows
from oku_core.spec.values.url import Url
from oku_workers.engines.aiohttp.route import build_options
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.engines.http.request_parts import list_values, open_data_rows
from oku_workers.engines.httptools.request import build_request
from oku_workers.engines.nghttp2.request import build_request as build_http2_request

INDICES = st.integers(0, 10**15)
TARGET_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]"
BODY_PIECES = ["{i}", "%", "%d", "%%", "%b", "ü", "{", "}", "\r\n", "\0", "x"]
BODIES = st.lists(st.sampled_from(BODY_PIECES)).map("".join)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
TEMPLATE: dict[str, Any] = {
    "base-url": "http://h:8080",
    "targets": [
        {
            "name": "buy",
            "url": "/items/{sku}/{i}?q={text}&again={sku}",
            "header": {"X-Sku": "{sku}", "X-Text": "<{text}>", "X-Same": "same"},
            "json": {"sku": "{sku}", "text": "a {text}", "i": "{i}"},
        }
    ],
}


def write(escape: Escape, text: str) -> bytes:
    """A value as it is written in one kind of place."""
    [written] = escape.write_all([text.encode()])
    return written


class OneRow:
    """One row, whose values are written as a reader would."""

    def __init__(self, spec: Spec, row: dict[str, str]) -> None:
        self.values = list_values(spec)
        self._row = tuple(write(value.escape, row[value.column]) for value in self.values)

    def read(self, _: int) -> tuple[bytes, ...]:
        """Give it."""
        return self._row


def build_spec(**values: Any) -> Spec:
    """A spec with the data of two columns."""
    found = describe_scan(
        "d.jsonl",
        DataTable(DataFormat.JSON_LINES, ("sku", "text")),
        Scan("0" * 64, 9, 9, "1" * 64),
        repeat=False,
    )
    return parse_spec(Source("spec.yaml", {**TEMPLATE, "data": found, **values}))


class Written(NamedTuple):
    """A request as an engine writes it: the headers as they are sent, no body as None."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes | None

    def list_values(self, name: str) -> list[str]:
        """The values of all headers of a name, which is in lower case."""
        return [value for each, value in self.headers if each.lower() == name]


Write = Callable[[RequestTemplate, Rows | None, int], Written]


def write_for_aiohttp(template: RequestTemplate, rows: Rows | None, index: int) -> Written:
    """The arguments of aiohttp, which adds Oku's own headers to those of the spec."""
    arguments = build_options(template, rows)(index)
    headers = list(arguments.get("headers", {}).items())
    return Written(arguments["method"], arguments["url"].raw_path_qs, headers, arguments.get("data"))


def write_for_httptools(template: RequestTemplate, rows: Rows | None, index: int) -> Written:
    """What goes over the wire."""
    head, _, body = build_request(template, build_origin(template.url), rows)(index).partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    method, target, version = line.split(" ")
    assert version == "HTTP/1.1"
    pairs = [(name, value) for name, _, value in (header.partition(": ") for header in headers)]
    return Written(method, target, pairs, body or (None if template.body is None else b""))


def write_for_nghttp2(template: RequestTemplate, rows: Rows | None, index: int) -> Written:
    """Fields and body; the pseudo-header fields stand first."""
    built = build_http2_request(template, build_origin(template.url), rows)
    fields = [(name.decode(), value.decode()) for name, value in built.headers(index)]
    assert [name for name, _ in fields[:4]] == [":method", ":scheme", ":authority", ":path"]
    body = None if built.body is None else built.body(index)
    return Written(fields[0][1], fields[3][1], fields[4:], body)


OWN_WRITERS: tuple[Write, ...] = (write_for_httptools, write_for_nghttp2)
WRITERS: tuple[Write, ...] = (write_for_aiohttp, *OWN_WRITERS)


def write_one(write_for: Write, index: int, text: str = "http://h/", **fields: Any) -> Written:
    """One request of a spec without data."""
    return write_for(RequestMix(Spec(urls=(Url(text),), **fields)).templates[0], None, index)


@given(
    path=st.text(TARGET_CHARACTERS),
    query=st.none() | st.text(TARGET_CHARACTERS + "?"),
    places=st.lists(st.integers(0), max_size=3),
    index=INDICES,
)
def test_what_a_url_may_contain_is_sent_as_it_is_written(
    path: str, query: str | None, places: list[int], index: int
) -> None:
    """Dots and escapes stay; only the index is put in, wherever and however often it stands."""
    target = f"/{path}" + (f"?{query}" if query else "")
    for place in places:
        at = 1 + place % len(target)
        target = target[:at] + "{i}" + target[at:]
    target = target.replace("{{i}i}", "{i}")
    sent = {write_one(each, index, f"http://127.0.0.1:8080{target}").target for each in WRITERS}
    assert sent == {target.replace("{i}", str(index))}


@given(
    index=INDICES,
    headers=st.lists(
        st.tuples(
            st.sampled_from(
                ["A", "a", "B-c", "User-Agent", "accept", "Content-Type", "TE", "Cookie", "HOST"]
            ),
            st.sampled_from(["", "x", "{i}", "x{i}y{i}", "a:b", "ü%d%"]),
        )
    ),
    body=st.none() | st.just("b{i}"),
)
def test_headers_are_those_of_the_spec(index: int, headers: list[tuple[str, str]], body: str | None) -> None:
    """Order and spelling are kept; Oku's own are sent where the spec has none of that name."""
    expected = [(name, value.replace("{i}", str(index))) for name, value in headers]
    named = {name.lower() for name, _ in headers}
    own = {"accept", "accept-encoding", "user-agent"}
    own |= {"content-type", "content-length"} if body is not None else set()
    lines = tuple(Header(f"{name}: {value}") for name, value in headers)
    aiohttp, httptools, nghttp2 = (write_one(each, index, headers=lines, body=body) for each in WRITERS)
    assert aiohttp.headers == expected
    assert [header for header in httptools.headers if header[0].lower() in named] == expected
    # RFC 9113 demands lower case, and has the host in a field of its own.
    lower = [(name.lower(), value) for name, value in expected if name != "HOST"]
    assert [header for header in nghttp2.headers if header[0] in named] == lower
    others = sorted(name.lower() for name, _ in httptools.headers if name.lower() not in named)
    assert others == sorted((own | {"host"}) - named)
    assert sorted(name for name, _ in nghttp2.headers if name not in named) == sorted(own - named)


@given(index=INDICES, body=BODIES)
def test_a_body_has_its_length(index: int, body: str) -> None:
    """It is counted in bytes, with the index put in; what looks like a format of Python is text."""
    expected = body.replace("{i}", str(index)).encode()
    for each in WRITERS:
        sent = write_one(each, index, method="POST", body=body)
        assert (sent.method, sent.body) == ("POST", expected)
        if each in OWN_WRITERS:
            assert sent.list_values("content-length") == [str(len(expected))]
            assert sent.list_values("content-type") == ["application/octet-stream"]


def test_what_a_head_says_of_a_body() -> None:
    """Nobody waits for a body that does not come; a length of the spec stands, and may be wrong."""
    table: list[tuple[str, str | None, str, list[str]]] = [
        *((method, None, "", ["0"]) for method in ("POST", "PUT", "PATCH", "DELETE", "PURGE")),
        *((method, None, "", []) for method in ("GET", "HEAD", "OPTIONS", "TRACE")),
        ("GET", "", "", ["0"]),
        *(("POST", body, length, [length]) for body, length in (("abc", "2"), (None, "0"), ("x{i}", "9"))),
    ]
    for each in OWN_WRITERS:
        found = []
        for method, body, length, _ in table:
            headers = (Header(f"Content-Length: {length}"),) if length else ()
            sent = write_one(each, 7, method=method, body=body, headers=headers)
            content = None if body is None else body.replace("{i}", "7").encode()
            assert (sent.method, sent.body) == (method, content)
            found.append((method, body, length, sent.list_values("content-length")))
        assert found == table


def test_a_line_that_would_be_two_cannot_be_sent() -> None:
    """It is refused when the engine is built, not when it is too late."""
    for each in OWN_WRITERS:
        for header in ("A: b\r\nC: d", "A: \0", "A\r: b", "A: {i}\n{i}", "Host: h\r\nC: d"):
            with pytest.raises(ValueError, match="has a line break or NUL"):
                write_one(each, 0, headers=(Header(header),))


@given(sku=TEXTS, text=TEXTS, index=INDICES)
def test_no_value_breaks_out_of_its_place_in_any_engine(sku: str, text: str, index: int) -> None:
    """Whatever the values are, the request has the same parts, and each part the values back."""
    spec = build_spec()
    rows = OneRow(spec, {"sku": sku, "text": text})
    [template] = RequestMix(spec).templates
    aiohttp, httptools, nghttp2 = (each(template, rows, index) for each in WRITERS)
    path, _, query = httptools.target.partition("?")
    assert (httptools.method, path.count("/"), unquote(path)) == ("POST", 3, f"/items/{sku}/{index}")
    assert parse_qsl(query, keep_blank_values=True) == [("q", text), ("again", sku)]
    assert httptools.body is not None
    assert json.loads(httptools.body) == {"sku": sku, "text": f"a {text}", "i": str(index)}
    assert httptools.list_values("x-text") == [f"<{write(IN_HEADER, text).decode()}>"]
    assert not set("\r\n\0") & set("".join(map("".join, httptools.headers)))
    # URL, headers and body of a request do not depend on the engine.
    assert aiohttp[:2] == nghttp2[:2] == httptools[:2]
    assert aiohttp.body == nghttp2.body == httptools.body
    assert [
        each for each in httptools.headers if each[0].startswith(("X-", "Content-Type"))
    ] == aiohttp.headers
    same = {name.lower(): value.strip(" \t") for name, value in httptools.headers if name != "Host"}
    assert dict(nghttp2.headers) == same


def test_what_requests_need_of_a_row_is_listed_once() -> None:
    """Each column once for each kind of place, in the order of their use."""
    values = list_values(build_spec())
    assert values[:3] == [Value("sku", IN_URL), Value("text", IN_URL), Value("sku", IN_HEADER)]
    assert len(values) == len({*values}) == 6


def test_the_data_of_a_spec_is_opened_by_its_digests(tmp_path: Path) -> None:
    """Files that are not of the size that the spec says are refused."""
    path, index = tmp_path / "d.csv", tmp_path / "index"
    path.write_text("sku,text\n" + "".join(f"s{row},t\n" for row in range(100)))
    table = read_table(path, "d.csv")
    found = scan(path, "d.csv", index, Use())
    spec = build_spec(data=describe_scan("d.csv", table, found, repeat=False))
    places = {found.digest: path, found.index_digest: index}
    rows = open_data_rows(spec, places.__getitem__)
    assert rows is not None
    with closing(rows):
        [template] = RequestMix(spec).templates
        assert [write_for_httptools(template, rows, number).target for number in (0, 99)] == [
            "/items/s0/0?q=t&again=s0",
            "/items/s99/99?q=t&again=s99",
        ]
    assert spec.data is not None
    more = msgspec.structs.replace(spec, data=msgspec.structs.replace(spec.data, rows=1000))
    with pytest.raises(EngineError, match=r"^data d\.csv cannot be used: the row index of the data has 16"):
        open_data_rows(more, places.__getitem__)
    assert open_data_rows(build_spec(targets=[{"name": "a", "url": "/"}]), places.__getitem__) is None

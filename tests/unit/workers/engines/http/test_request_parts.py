import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from oku_core.data.data_format import DataFormat
from oku_core.data.escape import IN_HEADER, IN_URL, Escape
from oku_core.data.row_reader import Value
from oku_core.data.scan import DataTable, Scan, Use, read_table, scan
from oku_core.http_client.request_head import build_origin
from oku_core.spec.data_file import describe_scan
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.route import build_options
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.engines.http.request_parts import list_values, open_data_rows
from oku_workers.engines.httptools.request import build_request
from oku_workers.engines.nghttp2.request import build_request as build_http2_request

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


def split(request: bytes) -> tuple[str, str, list[tuple[str, str]], bytes]:
    """Method, target, headers and body of a request as it goes over the wire."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    method, target, version = line.split(" ")
    assert version == "HTTP/1.1"
    return method, target, [(name, value) for name, _, value in (h.partition(": ") for h in headers)], body


@given(sku=TEXTS, text=TEXTS, index=st.integers(0, 10**15))
def test_no_value_breaks_out_of_its_place_in_any_engine(sku: str, text: str, index: int) -> None:
    """Whatever the values are, the request has the same parts, and each part the values back."""
    spec = build_spec()
    rows = OneRow(spec, {"sku": sku, "text": text})
    [template] = RequestMix(spec).templates
    method, target, headers, body = split(build_request(template, URL("http://h:8080"), rows)(index))
    path, _, query = target.partition("?")
    assert (method, path.count("/"), unquote(path)) == ("POST", 3, f"/items/{sku}/{index}")
    assert parse_qsl(query, keep_blank_values=True) == [("q", text), ("again", sku)]
    assert json.loads(body) == {"sku": sku, "text": f"a {text}", "i": str(index)}
    sent = dict(headers)
    assert sent["X-Text"] == f"<{write(IN_HEADER, text).decode()}>"
    assert sent["Content-Length"] == str(len(body))
    assert not set("\r\n\0") & set("".join(map("".join, headers)))
    # All engines send the same. URL, headers and body of a request do not depend on the engine.
    _, target, headers, body = split(build_request(template, build_origin(template.url), rows)(index))
    arguments = build_options(template, rows)(index)
    assert arguments["url"].raw_path_qs == target
    assert {name: value for name, value in headers if name.startswith(("X-", "Content-Type"))} == dict(
        arguments["headers"]
    )
    assert arguments["data"] == body
    framed = build_http2_request(template, build_origin(template.url), rows)
    fields = {name.decode(): value.decode() for name, value in framed.headers(index)}
    assert framed.body is not None
    assert (fields[":path"], framed.body(index)) == (target, body)
    same = {name.lower(): value.strip(" \t") for name, value in headers if name != "Host"}
    assert {name: value for name, value in fields.items() if name[0] != ":"} == same


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
        build = build_request(template, URL("http://h"), rows)
        assert [split(build(number))[1] for number in (0, 99)] == [
            "/items/s0/0?q=t&again=s0",
            "/items/s99/99?q=t&again=s99",
        ]
    assert spec.data is not None
    more = msgspec.structs.replace(spec, data=msgspec.structs.replace(spec.data, rows=1000))
    with pytest.raises(EngineError, match=r"^data d\.csv cannot be used: the row index of the data has 16"):
        open_data_rows(more, places.__getitem__)
    assert open_data_rows(build_spec(targets=[{"name": "a", "url": "/"}]), places.__getitem__) is None

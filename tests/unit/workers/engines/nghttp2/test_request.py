import string
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from oku_core.data.data_format import DataFormat
from oku_core.data.escape import AS_TEXT, IN_HEADER
from oku_core.data.row_reader import Value
from oku_core.http_client.request_head import build_origin
from oku_core.spec.data_file import DataFile
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import Rows
from oku_core.spec.values.url import Url
from oku_workers.engines.nghttp2.request import NOTHING, BuildRequest, build_request

INDICES = st.integers(0, 10**15)
TARGET_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]"
TEXTS = st.lists(st.sampled_from(["{i}", "%", "%d", "%%", "%b", "ü", "{", "}", "\r\n", "\0", "x"])).map(
    "".join
)
DATA = DataFile(
    name="a.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("sku",), index="1" * 64
)
Fields = list[tuple[str, str]]


class LongerRows:
    """Row `i` has a value of `i` letters."""

    def __init__(self, *values: Value) -> None:
        self.values = values

    def read(self, index: int) -> tuple[bytes, ...]:
        """The row of a request."""
        return (b"s" * index,) * len(self.values)


def prepare(text: str = "http://h/", rows: Rows | None = None, **fields: Any) -> BuildRequest:
    """What makes the requests of a spec."""
    url = Url(text)
    template = RequestMix(Spec(urls=(url,), **fields)).templates[0]
    return build_request(template, build_origin(url), rows)


def build(index: int, text: str = "http://h/", **fields: Any) -> tuple[Fields, bytes | None]:
    """Fields and body of one request."""
    built = prepare(text, **fields)
    pairs = [(name.decode(), value.decode()) for name, value in built.headers(index)]
    return pairs, None if built.body is None else built.body(index)


def list_values(fields: Fields, name: str) -> list[str]:
    """The values of all fields of a name."""
    return [value for each, value in fields if each == name]


def test_a_request_is_as_short_as_that() -> None:
    """Nothing is in it that no target needs, and its names are in lower case, as RFC 9113 demands."""
    fields, body = build(7, "http://h:8080/{i}")
    assert body is None
    assert fields == [
        (":method", "GET"), (":scheme", "http"), (":authority", "h:8080"), (":path", "/7"),
        ("accept", "*/*"), ("accept-encoding", "gzip, deflate"), ("user-agent", "oku/0.1"),
    ]  # fmt: skip


def test_where_a_request_goes_is_what_the_url_says() -> None:
    """A server would have to refuse it."""
    for text in ["http://h", "http://h?", "http://h/#part"]:
        assert list_values(build(0, text)[0], ":path") == ["/"]
    for name in ["Host", "host"]:
        # A host of the spec is the authority.
        fields, _ = build(7, "http://h/", headers=(Header("A: b"), Header(f"{name}: site{{i}}.example")))
        assert list_values(fields, ":authority") == ["site7.example"]
        assert list_values(fields, "host") == []
        assert [each for each, _ in fields].index(":authority") == 2


@pytest.mark.parametrize("index", [0, 3, 100])
def test_rows_stand_where_the_index_may(index: int) -> None:
    """The length of a body is that of its row."""
    rows = LongerRows(Value("sku", AS_TEXT), Value("sku", IN_HEADER))
    built = prepare(
        rows=rows,
        data=DATA,
        method="POST",
        body="<{sku}>",
        headers=(Header("X-Sku: {sku}"), Header("X-I: {i}")),
    )
    fields = dict(built.headers(index))
    assert built.body is not None
    assert built.body(index) == b"<%b>" % (b"s" * index)
    assert fields[b"content-length"] == b"%d" % (index + 2)
    assert (fields[b"x-sku"], fields[b"x-i"]) == (b"s" * index, b"%d" % index)


def test_one_value_of_a_row_in_a_field_is_enough() -> None:
    """All others are made in advance."""
    rows = LongerRows(Value("sku", IN_HEADER))
    built = prepare(rows=rows, data=DATA, headers=(Header("X-Sku: <{sku}>"),))
    first, second = built.headers(1), built.headers(2)
    assert (dict(first)[b"x-sku"], dict(second)[b"x-sku"]) == (b"<s>", b"<ss>")
    assert list(iter_differences(first, second)) == [b"x-sku"]


class OneRow(LongerRows):
    """Every row has a value with blanks around it."""

    def read(self, _: int) -> tuple[bytes, ...]:
        """The row of a request."""
        return (b" \ta b ",) * len(self.values)


@pytest.mark.parametrize("headers", ["X-Sku: {sku}", "X-Sku: {sku}\nX-I: {i}", "X-Sku: <{sku}"])
def test_blanks_around_the_value_of_a_row_are_left_out(headers: str) -> None:
    """A server would refuse the request for them, where one of HTTP/1.1 takes no notice; bodies have them."""
    rows = OneRow(Value("sku", IN_HEADER), Value("sku", AS_TEXT))
    lines = tuple(map(Header, headers.splitlines()))
    built = prepare(rows=rows, data=DATA, headers=lines, method="POST", body="{sku}")
    expected = b"< \ta b" if "<" in headers else b"a b"
    assert dict(built.headers(0))[b"x-sku"] == expected
    assert built.body is not None
    assert built.body(0) == b" \ta b "


def iter_differences(first: tuple[Any, ...], second: tuple[Any, ...]) -> Iterator[bytes]:
    """The names of the fields that are not the same object in both requests."""
    for one, other in zip(first, second, strict=True):
        if one is not other:
            yield one[0]


@given(INDICES, INDICES)
def test_what_has_no_index_is_written_once(first: int, second: int) -> None:
    """Each request is the same object, not an equal one."""
    spec = Spec(urls=(Url("http://h/"),), method="POST", body="x")
    built = build_request(RequestMix(spec).templates[0], URL("http://h"))
    assert built.headers(first) is built.headers(second)
    assert built.body is not None
    assert built.body(first) is built.body(second)


def test_a_request_that_cannot_be_sent_has_no_fields() -> None:
    """The engine knows it by that."""
    assert NOTHING.headers(0) == ()

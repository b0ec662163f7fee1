import gzip
import zlib

import pytest

from oku.http.http_client import Answer
from oku.http.response import RequestError, Response, find_value
from oku.http.scope import Scope

DOCUMENT = {
    "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5,
    'k"l': 6, " ": 7, "m~n": 8,
}  # fmt: skip


class Page:
    """What was asked."""

    url = "http://h/"


def build(body: bytes, *headers: str, kept: bytes | None = None) -> Response:
    """An answer with status 200."""
    head = "\r\n".join(("HTTP/1.1 200 OK", *headers, "", "")).encode()
    answer = Answer(200, head, body if kept is None else kept, len(body))
    return Response("page", Page(), answer, Scope())


def test_headers_may_be_in_any_case_and_several() -> None:
    """Lines that are folded are one."""
    response = build(b"", "X-A: 1", "x-a:2 ", "X-B: one", "  more", "nonsense")
    assert response.headers.getall("x-A") == ["1", "2"]
    assert response.headers["x-b"].split() == ["one", "more"]


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("gzip", gzip.compress(b"tea", mtime=0)),
        ("X-GZIP", gzip.compress(b"tea", mtime=0)),
        ("deflate", zlib.compress(b"tea")),
        ("deflate", zlib.compress(b"tea")[2:-4]),
        ("identity", b"tea"),
    ],
)
def test_bodies_are_decompressed(encoding: str, content: bytes) -> None:
    """The bytes that count are those that were sent."""
    response = build(content, f"Content-Encoding: {encoding}")
    assert (response.body, response.text(), response.received) == (b"tea", "tea", len(content))


def test_what_is_not_what_it_says_fails() -> None:
    """With the name of the request."""
    for response, message in (
        (build(b"tea", "Content-Encoding: gzip"), "page: its body is not gzip"),
        (build(b"tea", kept=b"te"), "page: its body of 3 bytes was not kept"),
    ):
        with pytest.raises(RequestError, match=message) as caught:
            response.json()
        assert caught.value.response is response
        assert not response.ok


def test_text_has_the_character_set_that_the_answer_names() -> None:
    """Or else it is UTF-8."""
    assert build("ü".encode("latin-1"), "Content-Type: text/plain; Charset=ISO-8859-1; a=b").text() == "ü"
    assert build("ü".encode(), 'Content-Type: text/plain; charset="utf-8"').text() == "ü"
    assert build("ü".encode(), "Content-Type: text/plain; charset=none-such").text() == "ü"
    assert build(b"\xff").text() == "\ufffd"


def test_json_by_pointers() -> None:
    """Falsy values are values."""
    response = build(b'{"a": [0, null, false, ""]}')
    assert [response.json(f"/a/{place}") for place in range(4)] == [0, None, False, ""]
    with pytest.raises(RequestError, match="page: its JSON has nothing at /a/4"):
        response.json("/a/4")
    with pytest.raises(ValueError, match="is not a JSON pointer"):
        response.json("a")
    with pytest.raises(RequestError, match="page: its body is not JSON"):
        build(b"tea").json()


def test_json_may_begin_with_a_byte_order_mark() -> None:
    """As browsers read it."""
    assert build(b"\xef\xbb\xbf[1]").json("/0") == 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff", b"\xef\xbb\xbf", b"9" * 100_000, b"1e999", b""])
def test_whatever_is_no_json_fails_in_the_same_way(body: bytes) -> None:
    """Also what exhausts the stack of a parser."""
    response = build(body)
    with pytest.raises(RequestError, match="page: its body is not JSON"):
        response.json()
    assert not response.ok


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2),
        ("/e^f", 3), ("/g|h", 4), ("/i\\j", 5), ('/k"l', 6), ("/ ", 7), ("/m~0n", 8),
    ],
)  # fmt: skip
def test_json_pointers_of_the_rfc(pointer: str, value: object) -> None:
    """RFC 6901, section 5."""
    assert find_value(DOCUMENT, pointer) == value


@pytest.mark.parametrize("pointer", ["/none", "/foo/2", "/foo/-", "/foo/01", "/foo/x", "/foo/0/a", "/foo/-1"])
def test_json_pointers_to_nothing(pointer: str) -> None:
    """An index has no zeros before it, and counts from the beginning."""
    with pytest.raises(LookupError):
        find_value(DOCUMENT, pointer)


def test_a_json_pointer_begins_with_a_slash() -> None:
    """Anything else is refused with its text."""
    with pytest.raises(ValueError, match=r"'foo' is not a JSON pointer such as /items/0/id"):
        find_value(DOCUMENT, "foo")

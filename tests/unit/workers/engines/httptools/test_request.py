import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from oku_core.http_client.http1_connection import PIECE_BYTES
from oku_core.http_client.request_head import build_origin
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.engines.httptools.request import build_request, share_body

INDICES = st.integers(0, 10**15)
TARGET_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]"
TEXTS = st.lists(st.sampled_from(["{i}", "%", "%d", "%%", "%b", "ü", "{", "}", "\r\n", "\0", "x"])).map(
    "".join
)


def build(index: int, text: str = "http://h/", **fields: Any) -> bytes:
    """The bytes of one request."""
    url = Url(text)
    return build_request(RequestMix(Spec(urls=(url,), **fields)).templates[0], build_origin(url))(index)


def split(request: bytes) -> tuple[str, list[tuple[str, str]], bytes]:
    """Request line, headers and body."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    return line, [(name, value.strip()) for name, _, value in (h.partition(":") for h in headers)], body


def test_a_request_is_as_short_as_that() -> None:
    """Nothing is in it that no target needs."""
    assert build(7, "http://h:8080/{i}") == (
        b"GET /7 HTTP/1.1\r\nHost: h:8080\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
        b"User-Agent: oku/0.1\r\n\r\n"
    )


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
    line, _, _ = split(build(index, f"http://127.0.0.1:8080{target}"))
    assert line == f"GET {target.replace('{i}', str(index))} HTTP/1.1"


@given(index=INDICES, body=TEXTS)
def test_a_body_has_its_length(index: int, body: str) -> None:
    """It is counted in bytes, with the index put in; what looks like a format of Python is text."""
    expected = body.replace("{i}", str(index)).encode()
    request = build(index, method="POST", body=body)
    line, headers, sent = split(request)
    assert line == "POST / HTTP/1.1"
    assert sent == expected
    assert [value for name, value in headers if name == "Content-Length"] == [str(len(expected))]
    assert dict(headers)["Content-Type"] == "application/octet-stream"


@given(
    index=INDICES,
    headers=st.lists(
        st.tuples(
            st.sampled_from(["A", "a", "B-c", "User-Agent", "accept", "HOST", "Content-Type"]),
            st.sampled_from(["", "x", "{i}", "x{i}y{i}", "a:b", "ü%d%"]),
        )
    ),
    body=st.none() | st.just("b{i}"),
)
def test_headers_are_those_of_the_spec(index: int, headers: list[tuple[str, str]], body: str | None) -> None:
    """Order and spelling are kept; Oku's own are sent where the spec has none of that name."""
    _, sent, _ = split(
        build(index, headers=tuple(Header(f"{name}: {value}") for name, value in headers), body=body)
    )
    named = {name.lower() for name, _ in headers}
    expected = [(name, value.replace("{i}", str(index))) for name, value in headers]
    assert [(name, value) for name, value in sent if name.lower() in named] == expected
    own = {"Host", "Accept", "Accept-Encoding", "User-Agent"}
    own |= {"Content-Type", "Content-Length"} if body is not None else set()
    assert {name for name, _ in sent if name.lower() not in named} == {
        name for name in own if name.lower() not in named
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PURGE"])
def test_a_method_that_has_a_body_says_when_there_is_none(method: str) -> None:
    """Nobody waits for a body then."""
    assert dict(split(build(0, method=method))[1])["Content-Length"] == "0"


def test_a_length_that_the_spec_gives_stands() -> None:
    """It may be wrong: that may be what is to be tested."""
    _, headers, body = split(build(0, method="POST", body="abc", headers=(Header("Content-Length: 2"),)))
    assert [value for name, value in headers if name == "Content-Length"] == ["2"]
    assert body == b"abc"


@pytest.mark.parametrize("header", ["A: b\r\nC: d", "A: \0", "A\r: b"])
def test_a_line_that_would_be_two_cannot_be_sent(header: str) -> None:
    """It is refused when the engine is built, not when it is too late."""
    with pytest.raises(ValueError, match="has a line break or NUL"):
        build(0, headers=(Header(header),))


@given(INDICES, INDICES)
def test_what_has_no_index_is_written_once(first: int, second: int) -> None:
    """Each request is the same object, not an equal one."""
    spec = Spec(urls=(Url("http://h/"),), method="POST", body="x")
    request = build_request(RequestMix(spec).templates[0], URL("http://h"))
    assert request(first) is request(second)


@pytest.mark.parametrize("headers", [(), (Header("Content-Length: 65537"),)])
@pytest.mark.parametrize("url", ["http://h/", "http://h/{i}"])
def test_a_long_body_that_all_requests_have_is_no_part_of_them(url: str, headers: tuple[Header, ...]) -> None:
    """It is not copied; a shorter one, or one that differs, is in each request."""
    origin, length = build_origin(Url(url)), PIECE_BYTES + 1
    for body, is_shared in (("%" * length, True), ("%" * PIECE_BYTES, False), ("{i}" + "%" * length, False)):
        spec = Spec(urls=(Url(url),), body=body, method="POST", headers=headers)
        template = RequestMix(spec).templates[0]
        shared = share_body(template, origin)
        assert bool(shared.body) == is_shared
        assert shared.build(7) + shared.body == build_request(template, origin)(7)
        assert split(shared.build(7) + shared.body)[2] == body.replace("{i}", "7").encode()

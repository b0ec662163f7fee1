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

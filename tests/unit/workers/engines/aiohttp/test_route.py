import asyncio
import string
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import MagicMock

import pytest
from aiohttp.http import StreamWriter
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from yarl import URL

from oku_core.http_client.error_reason import HUNG_UP
from oku_core.http_client.http1_connection import PIECE_BYTES, TransportError
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.engines.aiohttp.protocol import CURRENT_SLOT, ResponseProtocol, Slot
from oku_workers.engines.aiohttp.route import LongBody, build_options, build_routes

INDICES = st.integers(0, 10**15)
URL_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]"


SENT_AS_WRITTEN = {"method": "GET", "url": URL("http://host/"), "allow_redirects": False}


def build_only_arguments(url: str = "http://host/", **fields: Any) -> Callable[[int], Mapping[str, Any]]:
    """The arguments of the only kind of requests of a spec with one URL."""
    return build_options(RequestMix(Spec(urls=(Url(url),), **fields)).templates[0])


def make_url(template: str, index: int) -> URL:
    """The URL of one index."""
    url = build_only_arguments(template)(index)["url"]
    assert isinstance(url, URL)
    return url


@given(index=INDICES, count=st.integers(1, 5))
def test_several_urls_are_used_in_turn(index: int, count: int) -> None:
    """Index `i` asks the URL at `i` modulo their number."""
    spec = Spec(urls=tuple(Url(f"http://host-{turn}/{{i}}") for turn in range(count)))
    routes = build_routes(RequestMix(spec), 1.0)
    assert str(routes[index % len(routes)].build(index)["url"]) == f"http://host-{index % count}/{index}"


@pytest.mark.parametrize("template", ["http://host:99999999/{i}", "http://host:port/"])
def test_a_url_that_cannot_be_fails_when_it_is_asked_for(template: str) -> None:
    """The engine can be built, and each request ends in an outcome."""
    builder = build_only_arguments(template)
    with pytest.raises(ValueError, match=r"\S"):
        builder(0)


def test_what_is_the_same_for_all_requests_is_made_once() -> None:
    """The hot path is faster so."""
    build = build_only_arguments(headers=(Header("A: b"),))
    assert build(1) is build(2)
    build = build_only_arguments(headers=(Header("A: {i}"),))
    assert build(1)["url"] is build(2)["url"]
    assert build_only_arguments()(1) == SENT_AS_WRITTEN


def test_a_body_is_bytes() -> None:
    """It is UTF-8, with the index put in."""
    for changes, arguments in (
        ({"body": "größe={i}"}, {"data": "größe=7".encode()}),
        ({"body": ""}, {"data": b""}),
        ({"headers": (Header("A: {i}"),), "body": "x"}, {"headers": CIMultiDict({"A": "7"}), "data": b"x"}),
    ):
        assert build_only_arguments(**changes)(7) == {**SENT_AS_WRITTEN, **arguments}


def test_each_target_has_headers_of_its_own() -> None:
    """And one that asks to close has a connection for each request."""
    targets = (
        Target(name="a", url="http://host/a", headers=(Header("A: b"), Header("connection: Close"))),
        Target(name="c", url="http://host/"),
    )
    routes = build_routes(RequestMix(Spec(headers=(Header("X: y"),), targets=targets)), 1.0)
    assert {route.needs: list(route.build(0)["headers"].items()) for route in routes} == {
        (0, True): [("X", "y"), ("A", "b"), ("connection", "Close")],
        (0, False): [("X", "y")],
    }


CONTENT = bytes(range(256)) * 1000


async def send_long_body(length: int | None, *, is_closed: bool = False) -> tuple[ResponseProtocol, bytes]:
    """Send `CONTENT` on a connection, and return what its transport got."""
    sent = bytearray()

    def write(piece: memoryview) -> None:
        assert piece.obj is CONTENT
        assert len(piece) <= PIECE_BYTES
        sent.extend(piece)

    loop = asyncio.get_running_loop()
    protocol = ResponseProtocol(loop)
    protocol.transport = MagicMock(asyncio.Transport, write=write)
    protocol.transport.is_closing.return_value = is_closed
    await LongBody(CONTENT).write_with_length(StreamWriter(protocol, loop), length)
    return protocol, bytes(sent)


@pytest.mark.parametrize("length", [None, 0, 1, PIECE_BYTES, PIECE_BYTES + 1, len(CONTENT)])
async def test_a_long_body_is_sent_in_pieces_that_are_no_copies(length: int | None) -> None:
    """As much of it as a `Content-Length` says."""
    _, sent = await send_long_body(length)
    assert sent == CONTENT[:length]
    assert LongBody(CONTENT).size == len(CONTENT)


async def test_a_long_body_that_cannot_be_sent_leaves_the_connection_alone() -> None:
    """A response may have come before; without one, the connection ends for its own reason."""
    protocol, _ = await send_long_body(None, is_closed=True)
    [route] = build_routes(RequestMix(Spec(urls=(Url("http://host/"),))), 1.0)
    slot = Slot()
    slot.route = route
    CURRENT_SLOT.set(slot)
    protocol.set_response_params()
    protocol.connection_lost(None)
    with pytest.raises(TransportError, match=HUNG_UP):
        await protocol.read()

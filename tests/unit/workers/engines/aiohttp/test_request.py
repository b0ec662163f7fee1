import string
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from yarl import URL

from oku_core.http_client.client_rules import PIECE_BYTES
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.engines.aiohttp.request import LongBody, build_arguments, build_shared_headers, build_url
from oku_workers.engines.aiohttp.route import Route, build_routes

INDICES = st.integers(0, 10**15)
URL_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]"


def make_url(template: str, index: int) -> URL:
    """The URL of one index."""
    return build_url(Url(template))(index)


def build_mix(**fields: Any) -> RequestMix:
    """The requests of a spec with one URL."""
    return RequestMix(Spec(urls=(Url("http://host/"),), **fields))


def build_only_arguments(**fields: Any) -> Callable[[int], Mapping[str, Any]] | None:
    """The arguments of the only kind of requests of a spec."""
    return build_arguments(build_mix(**fields).templates[0], is_only=True, has_sender=False)


@given(
    path=st.text(URL_CHARACTERS),
    query=st.none() | st.text(URL_CHARACTERS + "?"),
    cut=st.integers(0),
    index=INDICES,
)
def test_what_a_url_may_contain_is_sent_as_it_is_written(
    path: str, query: str | None, cut: int, index: int
) -> None:
    """Dots and escapes stay; only the index is put in."""
    target = f"/{path}" + (f"?{query}" if query else "")
    cut = 1 + cut % len(target)
    written = target[:cut] + "{i}" + target[cut:]
    assert make_url(f"http://127.0.0.1:8080{written}", index).raw_path_qs == written.replace(
        "{i}", str(index)
    )


@given(st.text(max_size=10), INDICES)
def test_what_a_url_cannot_contain_is_encoded(text: str, index: int) -> None:
    """It is encoded as UTF-8, and decodes to what was written."""
    text = text.replace("?", "").replace("#", "").replace("%", "").replace("{", "")
    text = text.encode("utf-8", "ignore").decode()
    text = "".join(letter for letter in text if letter.isprintable())
    url = make_url(f"http://host/{text}/{{i}}", index)
    assert url.raw_path.isascii()
    assert " " not in url.raw_path
    assert url.path == f"/{text}/{index}"


@pytest.mark.parametrize(
    ("template", "host", "port", "target"),
    [
        ("http://host", "host", 80, "/"),
        ("http://host?x={i}", "host", 80, "/?x=7"),
        ("http://HOST:80/{i}", "host", 80, "/7"),
        ("https://host/{i}/{i}?{i}", "host", 443, "/7/7?7"),
        ("https://host:8443/", "host", 8443, "/"),
        ("http://[::1]:8080/{i}", "::1", 8080, "/7"),
        ("http://straße.example/{i}", "xn--strae-oqa.example", 80, "/7"),
    ],
)
def test_a_url_names_its_host(template: str, host: str, port: int, target: str) -> None:
    """The host can be looked up as it stands; the port is that of the scheme unless the URL gives one."""
    url = make_url(template, 7)
    assert (url.raw_host, url.port, url.raw_path_qs) == (host, port, target)


def test_a_user_in_a_url_is_kept() -> None:
    """It becomes an Authorization header."""
    url = make_url("http://name:secret@host/{i}", 7)
    assert (url.user, url.password, url.raw_path_qs) == ("name", "secret", "/7")


@given(index=INDICES, count=st.integers(1, 5))
def test_several_urls_are_used_in_turn(index: int, count: int) -> None:
    """Index `i` asks the URL at `i` modulo their number."""
    spec = Spec(urls=tuple(Url(f"http://host-{turn}/{{i}}") for turn in range(count)))
    routes = build_routes(spec, RequestMix(spec))
    assert str(routes[index % len(routes)].build_url(index)) == f"http://host-{index % count}/{index}"


def test_a_constant_url_is_made_once() -> None:
    """Parsing it for each request would cost more than the rest of the engine."""
    builder = build_url(Url("http://host/path"))
    assert builder(1) is builder(2)


@pytest.mark.parametrize("template", ["http://host:99999999/{i}", "http://host:port/"])
def test_a_url_that_cannot_be_fails_when_it_is_asked_for(template: str) -> None:
    """The engine can be built, and each request ends in an outcome."""
    builder = build_url(Url(template))
    with pytest.raises(ValueError, match=r"\S"):
        builder(0)


def build_own_headers(index: int, **fields: Any) -> list[tuple[str, str]]:
    """The headers that one request has beside the shared ones."""
    build = build_only_arguments(**fields)
    return [] if build is None else build(index).get("headers", [])


header_names = st.sampled_from(["A", "a", "B", "C-c", "User-Agent"])
header_values = st.sampled_from(["", "x", "{i}", "x{i}y", "a:b", "ü"])


@given(st.lists(st.tuples(header_names, header_values)), INDICES)
def test_shared_and_own_headers_are_together_those_of_the_spec(
    headers: list[tuple[str, str]], index: int
) -> None:
    """Each name has all of its values in their order; no name stands on both sides."""
    given = tuple(Header(f"{name}: {value}") for name, value in headers)
    shared = CIMultiDict(build_shared_headers(build_mix(headers=given), has_sender=False))
    own = CIMultiDict(build_own_headers(index, headers=given))
    expected = CIMultiDict((name, value.replace("{i}", str(index))) for name, value in headers)
    assert not {name.lower() for name in shared} & {name.lower() for name in own}
    for name in {*expected, *shared, *own}:
        assert [*shared.getall(name, []), *own.getall(name, [])] == expected.getall(name)


def test_a_request_without_anything_of_its_own_has_no_arguments() -> None:
    """The hot path is faster without them."""
    assert build_only_arguments(headers=(Header("A: b"),)) is None


@pytest.mark.parametrize(
    ("changes", "arguments"),
    [
        ({"body": "größe={i}"}, {"data": "größe=7".encode()}),
        ({"body": ""}, {"data": b""}),
        ({"headers": (Header("A: {i}"),), "body": "x"}, {"headers": [("A", "7")], "data": b"x"}),
    ],
)
def test_a_body_is_bytes(changes: dict[str, Any], arguments: dict[str, Any]) -> None:
    """It is UTF-8, with the index put in."""
    build = build_only_arguments(**changes)
    assert build is not None
    assert build(7) == {"allow_redirects": False, **arguments}


def test_headers_of_several_targets_are_sent_by_each() -> None:
    """The session cannot send for all of them what only some have."""
    targets = (
        Target(name="a", url="http://host/a", headers=(Header("A: b"),)),
        Target(name="c", url="http://host/"),
    )
    mix = RequestMix(spec := Spec(headers=(Header("X: y"),), targets=targets))
    assert build_shared_headers(mix, has_sender=False) == []
    builds = [Route(template, spec, is_only=False).build_arguments for template in mix.templates]
    assert [build and build(0)["headers"] for build in builds] == [[("X", "y"), ("A", "b")], [("X", "y")]]


CONTENT = bytes(range(256)) * 1000


@pytest.mark.parametrize("length", [None, 0, 1, PIECE_BYTES, PIECE_BYTES + 1, len(CONTENT)])
async def test_a_long_body_is_sent_in_pieces_that_are_no_copies(length: int | None) -> None:
    """As much of it as a `Content-Length` says."""
    pieces: list[Any] = []

    async def write(piece: memoryview) -> None:
        pieces.append(piece)

    writer: Any = SimpleNamespace(write=write)
    body = LongBody(CONTENT)
    await (body.write(writer) if length is None else body.write_with_length(writer, length))
    assert b"".join(pieces) == CONTENT[:length]
    assert all(piece.obj is CONTENT and len(piece) <= PIECE_BYTES for piece in pieces)
    assert body.size == len(CONTENT)
    assert body.decode("latin-1").encode("latin-1") == CONTENT

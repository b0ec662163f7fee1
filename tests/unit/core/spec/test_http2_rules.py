"""What a spec may say when it speaks HTTP/2, and what only then."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.runs.specs import http2_specs

from oku_core.errors import UserError
from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.spec import HTTP1_ENGINES, USER_CODE_ENGINES, Engine, Spec

TARGET = {"url": "https://h/{i}"}
CODE = f"a.py@sha256:{'a' * 64}:10:a.py"
CLOSE = "Connection: close"
NAMES_CLOSE = "Connection: close is of HTTP/1.1 and not allowed in HTTP/2; leave it out"


def parse(values: dict[str, Any], **more: Any) -> Spec:
    """Parse a spec with a URL."""
    return parse_spec(Source("s.yaml", TARGET | values | more))


def read_fault(values: dict[str, Any]) -> str:
    """The error of a spec without anything else."""
    with pytest.raises(UserError) as caught:
        parse_spec(Source("s.yaml", values))
    return str(caught.value)


@pytest.mark.parametrize(
    "values",
    [{"http2": True}, {"engine": "nghttp2"}, {"http2": True, "engine": "nghttp2"}],
    ids=["http2", "engine", "both"],
)
def test_the_switch_and_the_engine_mean_the_same(values: dict[str, Any]) -> None:
    """Nobody has to know the name of the engine."""
    spec = parse(values)
    assert (spec.http2, spec.engine) == (True, Engine.NGHTTP2)
    assert (spec.streams, spec.connections) == (10, None)


@pytest.mark.parametrize("values", [{}, {"http2": False}, {"engine": "httptools"}])
def test_http1_is_what_is_spoken_otherwise(values: dict[str, Any]) -> None:
    """Nothing of HTTP/2 is written into such a spec."""
    spec = parse(values)
    assert not spec.http2
    assert spec.engine in HTTP1_ENGINES
    assert not {"http2", "streams", "connections"} & build_mapping(spec).keys()


@pytest.mark.parametrize("engine", HTTP1_ENGINES)
def test_an_engine_of_http1_does_not_speak_http2(engine: Engine) -> None:
    """A spec that asks for both is refused; neither of them wins."""
    fault = read_fault(TARGET | {"http2": True, "engine": engine})
    assert fault == f"s.yaml: http2: the engine {engine} speaks HTTP/1.1, use nghttp2"


def test_the_engine_of_http2_does_not_speak_http1() -> None:
    """It cannot be told to."""
    fault = read_fault(TARGET | {"http2": False, "engine": "nghttp2"})
    assert (
        fault == "s.yaml: http2: false is not possible with the engine nghttp2, use one of aiohttp, httptools"
    )


@pytest.mark.parametrize("key", ["streams", "connections"])
@pytest.mark.parametrize("engine", HTTP1_ENGINES)
def test_streams_and_connections_are_of_http2(engine: Engine, key: str) -> None:
    """A connection of HTTP/1.1 has one request at a time."""
    fault = read_fault(TARGET | {"engine": engine, key: 5})
    assert fault == f"s.yaml: {key}: applies only to HTTP/2: the engine {engine} speaks HTTP/1.1, use http2"


@pytest.mark.parametrize("engine", sorted(USER_CODE_ENGINES))
@pytest.mark.parametrize("key", ["http2", "streams", "connections"])
def test_user_code_does_not_speak_http2(engine: Engine, key: str) -> None:
    """It is not told to use an engine that runs no user code."""
    fault = read_fault({"engine": engine, "scenario": CODE, key: True if key == "http2" else 5})
    assert fault == f"s.yaml: {key}: cannot be combined with user code, which speaks HTTP/1.1"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"keepalive": False}, "keepalive: connections of HTTP/2 are kept; leave it out, or use HTTP/1.1"),
        ({"proxy": "http://p:3128"}, "proxy: the engine nghttp2 does not support this, use aiohttp"),
        ({"max-redirects": 3}, "max-redirects: the engine nghttp2 does not support this, use aiohttp"),
        ({"cookies": True}, "cookies: the engine nghttp2 does not support this, use aiohttp"),
        ({"header": CLOSE}, f"header: {NAMES_CLOSE}"),
        ({"header": {"keep-alive": "timeout=5"}}, "header: keep-alive: timeout=5 is of HTTP/1.1"),
        ({"header": ["A: b", "Proxy-Connection: close"]}, "header: Proxy-Connection: close is of HTTP/1.1"),
        ({"header": "TE: gzip"}, "header: TE: gzip is of HTTP/1.1"),
        ({"header": "TE: {i}"}, "header: TE: {i} is of HTTP/1.1"),
        ({"header": "Upgrade: h2c"}, "header: Upgrade: h2c: connections speak one protocol"),
        ({"header": "HTTP2-Settings: x"}, "header: HTTP2-Settings: x: connections speak one protocol"),
        (
            {"header": "Transfer-Encoding: chunked"},
            "header: Transfer-Encoding: chunked: bodies are sent whole",
        ),
    ],
)
def test_what_is_of_http1_is_refused(values: dict[str, Any], fault: str) -> None:
    """In one line, with what to do instead."""
    assert read_fault(TARGET | {"http2": True} | values).startswith(f"s.yaml: {fault}")


@pytest.mark.parametrize(
    "header", ["TE: trailers", "te: Trailers", "Host: {i}.example", "X-Connection: close"]
)
def test_what_http2_allows_may_be_sent(header: str) -> None:
    """Who asks for trailers gets them, as with gRPC."""
    assert parse({"http2": True, "header": header}).headers == (header,)


def test_headers_of_targets_are_held_to_the_same() -> None:
    """The error names the target."""
    targets = [{"name": "a", "url": "http://h/"}, {"name": "b", "url": "http://h/", "header": CLOSE}]
    assert read_fault({"http2": True, "targets": targets}) == f"s.yaml: targets: b: header: {NAMES_CLOSE}"
    del targets[1]["header"]
    assert len(parse_spec(Source(None, {"http2": True, "targets": targets})).targets) == 2


@pytest.mark.parametrize(("key", "value"), [("http2", True), ("engine", "nghttp2")])
@pytest.mark.parametrize("target", [{}, {"targets": [{"name": "a", "url": "/"}]}])
def test_the_delay_servers_do_not_speak_http2(target: dict[str, Any], key: str, value: object) -> None:
    """The key that was given is the one to blame."""
    fault = read_fault(target | {key: value})
    assert fault == (
        f"s.yaml: {key}: Oku's own delay servers speak HTTP/1.1; give a URL, or use another engine"
    )


@pytest.mark.parametrize(
    ("values", "concurrency", "is_shared"),
    [
        ({}, 100, False),
        ({"streams": 7}, 100, False),
        ({"connections": 4}, 40, False),
        ({"connections": 4, "streams": 25}, 100, False),
        ({"connections": 1, "streams": 1}, 1, False),
        ({"connections": 4, "streams": 25, "concurrency": 7}, 7, False),
        ({"connections": "100k", "streams": "10k"}, 1_000_000, False),
        ({"connections": 4, "duration": "10m"}, 40, False),
        ({"connections": 4, "rate": "50/s", "duration": "10m"}, 100, True),
        ({"connections": 4, "stages": "1m:0..70"}, 70, True),
    ],
)
def test_as_many_requests_are_in_flight_as_there_are_streams(
    values: dict[str, Any], concurrency: int, *, is_shared: bool
) -> None:
    """Who says how many connections there are has said it all, unless the load or the user says otherwise."""
    spec = parse({"http2": True} | values)
    assert (spec.concurrency, spec.shares_concurrency) == (concurrency, is_shared)
    assert parse_spec(Source("s.yaml", build_mapping(spec))) == spec


@settings(max_examples=30)
@given(http2_specs())
def test_a_spec_of_http2_is_written_as_one(spec: Spec) -> None:
    """It says so, and on how many streams."""
    mapping = build_mapping(spec)
    assert (mapping["http2"], mapping["engine"], mapping["streams"]) == (True, "nghttp2", spec.streams)
    assert mapping.get("connections") == spec.connections


@settings(max_examples=30)
@given(st.sampled_from(["http2", "streams", "connections"]), http2_specs())
def test_a_later_source_may_change_what_is_of_http2(key: str, spec: Spec) -> None:
    """Key by key, as with all others."""
    over = {"http2": True, "streams": 3, "connections": 5}[key]
    mapping = build_mapping(spec)
    merged = parse_spec(Source("s.yaml", mapping), Source(None, {key: over}))
    assert merged == parse_spec(Source(None, mapping | {key: over}))

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.runs.specs import http2_specs

from oku_core.data.data_format import DataFormat
from oku_core.errors import UserError
from oku_core.spec.data_file import DataFile
from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.request_rules import compile_patterns, find_memory_fault, has_patterns
from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.target import Target
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.pattern import MOST_PATTERNS, PatternError

TARGET = {"url": "https://h/{i}"}
CODE = f"a.py@sha256:{'a' * 64}:10:a.py"
CLOSE = "Connection: close"
NAMES_CLOSE = "Connection: close is of HTTP/1.1 and not allowed in HTTP/2; leave it out"


def parse_http2(values: dict[str, Any], **more: Any) -> Spec:
    """Parse a spec with a URL."""
    return parse_spec(Source("s.yaml", TARGET | values | more))


def read_http2_fault(values: dict[str, Any]) -> str:
    """The error of a spec without anything else."""
    with pytest.raises(UserError) as caught:
        parse_spec(Source("s.yaml", values))
    return str(caught.value)


def test_the_switch_and_the_engine_mean_the_same() -> None:
    """Nobody has to know the name of the engine."""
    cases: list[dict[str, Any]] = [
        {"http2": True},
        {"engine": "nghttp2"},
        {"http2": True, "engine": "nghttp2"},
    ]
    for values in cases:
        spec = parse_http2(values)
        assert (spec.http2, spec.engine) == (True, Engine.NGHTTP2)
        assert (spec.streams, spec.connections) == (10, None)
    other_cases: list[dict[str, Any]] = [{}, {"http2": False}, {"engine": "httptools"}]
    for values in other_cases:
        # Http1 is what is spoken otherwise. Nothing of HTTP/2 is written into such a spec.
        spec = parse_http2(values)
        assert not spec.http2
        assert spec.engine in (None, *HTTP1_ENGINES)
        assert not {"http2", "streams", "connections"} & build_mapping(spec).keys()


def test_an_engine_speaks_one_version_of_http() -> None:
    """A spec that asks for both is refused; the engine of HTTP/2 speaks no other version."""
    fault = read_http2_fault(TARGET | {"http2": False, "engine": "nghttp2"})
    assert fault.endswith("false is not possible with the engine nghttp2, use one of aiohttp, httptools")


@pytest.mark.parametrize(
    ("values", "fault"),
    [
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
    assert read_http2_fault(TARGET | {"http2": True} | values).startswith(f"s.yaml: {fault}")


def test_what_http2_allows_may_be_sent() -> None:
    """Who asks for trailers gets them, as with gRPC."""
    for header in ["TE: trailers", "te: Trailers", "Host: {i}.example", "X-Connection: close"]:
        assert parse_http2({"http2": True, "header": header}).headers == (header,)
    # Headers of targets are held to the same. The error names the target.
    targets = [{"name": "a", "url": "http://h/"}, {"name": "b", "url": "http://h/", "header": CLOSE}]
    assert (
        read_http2_fault({"http2": True, "targets": targets}) == f"s.yaml: targets: b: header: {NAMES_CLOSE}"
    )
    del targets[1]["header"]
    assert len(parse_spec(Source(None, {"http2": True, "targets": targets})).targets) == 2


@pytest.mark.parametrize(("key", "value"), [("http2", True), ("engine", "nghttp2")])
@pytest.mark.parametrize("target", [{}, {"targets": [{"name": "a", "url": "/"}]}])
def test_the_delay_servers_do_not_speak_http2(target: dict[str, Any], key: str, value: object) -> None:
    """The key that was given is the one to blame."""
    fault = read_http2_fault(target | {key: value})
    assert fault == (
        f"s.yaml: {key}: Oku's own delay servers speak HTTP/1.1; give a URL, or use another engine"
    )


@pytest.mark.parametrize(
    ("values", "concurrency"),
    [
        ({}, 100),
        ({"streams": 7}, 100),
        ({"connections": 4}, 40),
        ({"connections": 4, "streams": 25}, 100),
        ({"connections": 1, "streams": 1}, 1),
        ({"connections": 4, "streams": 25, "concurrency": 7}, 7),
        ({"connections": "100k", "streams": "10k"}, 10_000_000),
        ({"connections": 4, "duration": "10m"}, 40),
        ({"connections": 4, "rate": "50/s", "duration": "10m"}, 100),
        ({"connections": 4, "stages": "1m:0..70"}, 70),
    ],
)
def test_as_many_requests_are_in_flight_as_there_are_streams(
    values: dict[str, Any], concurrency: int
) -> None:
    """Who says how many connections there are has said it all, unless the load or the user says otherwise."""
    spec = parse_http2({"http2": True} | values)
    assert spec.concurrency == concurrency
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


URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (
            {"url": URL, "expect-match": ["ok", "(?=a)"]},
            "spec: expect-match: (?=a) is not a regular expression of RE2: lookahead is not supported",
        ),
        (
            {"targets": [{"name": "tea", "url": URL, "expect": {"match": "("}}]},
            "spec: targets: tea: expect: match: ( is not a regular expression of RE2: missing ): (",
        ),
        (
            {"url": URL, "expect-match": [str(number) for number in range(MOST_PATTERNS + 1)]},
            "spec: expect-match: a spec has at most 100 different regular expressions",
        ),
        (
            {"targets": [{"url": URL, "expect": {"match": ["(", *map(str, range(MOST_PATTERNS))]}}]},
            f"spec: targets: GET {URL}: expect: match: a spec has at most 100 different regular expressions",
        ),
    ],
)
def test_the_fault_of_a_pattern_names_its_place(values: dict[str, object], fault: str) -> None:
    """Patterns are counted before any is compiled."""
    with pytest.raises(SpecError) as caught:
        parse_spec(Source("spec", values))
    assert str(caught.value) == fault


def test_the_same_pattern_counts_once() -> None:
    """Many targets may expect the same."""
    targets = [
        {"name": str(number), "url": URL, "expect": {"match": ["same", "again"]}}
        for number in range(MOST_PATTERNS)
    ]
    assert parse_spec(Source("spec", {"targets": targets, "expect-match": "same"})).expect_match == ("same",)
    # Patterns are compiled in advance.
    assert not has_patterns(Spec())
    spec = Spec(expect_match=("(",))
    assert has_patterns(spec)
    with pytest.raises(PatternError):
        compile_patterns(spec)


TOO_LARGE = (
    "body: each request has its own body, and 100 in flight in one worker take 100.3 kB of memory, but it"
    " may use 100.0 kB: lower the concurrency, or send the same body with all requests"
)
FILE = FileRef.build("0" * 64, 1003, "body.bin")


def check(spec: Spec, in_flight: int, limit_bytes: int, path: Path = Path("missing")) -> str:
    """What is wrong with a spec, whose file of the run is here."""
    return find_memory_fault(spec, in_flight, limit_bytes, lambda _: path)


@pytest.mark.parametrize(("content", "fault"), [(b"\xff{i}" + b"x" * 999, TOO_LARGE), (b"\xff" * 1003, "")])
def test_a_file_may_have_placeholders_in_it(tmp_path: Path, content: bytes, fault: str) -> None:
    """It is read only if it matters."""
    path = tmp_path / "body.bin"
    path.write_bytes(content)
    assert check(Spec(body=FILE), 100, 100_000, path) == fault
    assert check(Spec(body=FILE), 10, 100_000) == ""


def test_bodies_that_differ_are_refused_where_they_do_not_fit() -> None:
    """By how many are in flight; nothing is refused where the memory is not known."""
    spec = Spec(body="{i}" + "x" * 1000)
    assert check(spec, 100, 100_000) == TOO_LARGE
    assert check(spec, 99, 100_000) == check(spec, 100, 100_300) == check(spec, 100, 0) == ""
    cases: list[str | None] = [None, "x" * 1003, "{j}" + "x" * 1000]
    for body in cases:
        # A body that all requests have is not refused.
        assert check(Spec(body=body), 100, 100_000) == ""
    # A column makes bodies differ. As the index does.
    table = DataFile(
        name="a.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("j",), index="1" * 64
    )
    assert check(Spec(body="{j}" + "x" * 1000, data=table), 100, 100_000) == TOO_LARGE
    # Each target has its share of what is in flight. A large body that is rare takes little.
    large, small = Target(name="a", url="/", body="{i}" + "x" * 1000), Target(name="b", url="/", weight=9)
    assert check(Spec(targets=(large, small)), 100, 100_000) == ""
    assert "1,000 in flight in one worker" in check(Spec(targets=(large, small)), 1000, 100_000)

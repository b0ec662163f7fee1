from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.runs.specs import http2_specs

from oku_core.errors import UserError
from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.rules import compile_patterns, find_pattern_fault, has_patterns
from oku_core.spec.spec import (
    HTTP1_ENGINES,
    OPEN_END,
    USER_CODE_ENGINES,
    Engine,
    Spec,
    decode_spec,
    encode_spec,
)
from oku_core.spec.target import Expectation, Target
from oku_core.spec.values.pattern import MOST_PATTERNS, PatternError

DIGEST = "0" * 64
DATA = {
    "name": "skus.csv", "format": "csv", "digest": DIGEST, "size": 99, "rows": 50,
    "columns": ["sku", "price"], "index": DIGEST, "repeat": False,
}  # fmt: skip


def parse(**values: Any) -> Spec:
    """Parse a spec of a file, with data unless that is given."""
    return parse_spec(Source("spec.yaml", {"data": DATA, **values}))


def read_fault(**values: Any) -> str:
    """Return the one line that says what is wrong."""
    with pytest.raises(SpecError) as caught:
        parse(**values)
    return str(caught.value)


def test_a_spec_with_data_survives_being_written() -> None:
    """As a mapping with keys, and as JSON for ledger and broker."""
    spec = parse(url="http://h/{sku}", header="X: {price}")
    assert parse_spec(Source("again", build_mapping(spec))) == spec
    assert decode_spec(encode_spec(spec)) == spec
    assert spec.data is not None
    assert spec.data.columns == ("sku", "price")


@pytest.mark.parametrize(
    ("values", "requests"),
    [
        ({}, 50),
        ({"requests": 7}, 7),
        ({"rate": "10/s"}, 50),
        ({"duration": "10s"}, 50),
        ({"duration": "10s", "data": DATA | {"repeat": True}}, OPEN_END),
        ({"duration": "10s", "requests": 7}, 7),
        ({"rate": "100/s", "duration": "10s", "data": DATA | {"repeat": True}}, 1000),
        ({"requests": 500, "data": DATA | {"repeat": True}}, 500),
    ],
)
def test_there_are_as_many_requests_as_rows_unless_the_spec_says_otherwise(
    values: dict[str, Any], requests: int
) -> None:
    """Rows bound a run that ends after a time, unless they start over."""
    assert parse(url="http://h/{sku}", **values).requests == requests


@pytest.mark.parametrize(
    "values", [{"requests": 51}, {"requests": 51, "duration": "1h"}, {"rate": "51/s", "duration": "1s"}]
)
def test_more_requests_than_rows_are_refused(values: dict[str, Any]) -> None:
    """The message says how to allow it."""
    assert read_fault(url="http://h/{sku}", **values) == (
        "spec.yaml: data: skus.csv has 50 rows, fewer than the 51 requests of this run; "
        "skus.csv:repeat starts over after the last row"
    )


def test_one_row_is_a_row() -> None:
    """Not rows."""
    assert "skus.csv has 1 row, fewer" in read_fault(
        url="http://h/{sku}", requests=2, data=DATA | {"rows": 1}
    )


VARIES = "the length of a body with columns in it varies; leave the header out, Oku sends it"
COLUMNS = "is not a column of skus.csv (sku, price)"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"url": "http://h/{skuu}"}, f"url: {{skuu}} {COLUMNS}"),
        ({"url": "http://h/?a={sku}&b={x}"}, f"url: {{x}} {COLUMNS}"),
        ({"url": "http://h/", "header": "X: {y}"}, f"header: X: {{y}} {COLUMNS}"),
        ({"url": "http://h/", "body": "{y}"}, f"body: {{y}} {COLUMNS}"),
        (
            {"base-url": "http://h", "targets": [{"name": "buy", "url": "/{skuu}"}]},
            f"targets: buy: url: {{skuu}} {COLUMNS}",
        ),
        (
            {"base-url": "http://h", "targets": [{"name": "buy", "url": "/", "json": {"a": "{b}"}}]},
            f"targets: buy: json: {{b}} {COLUMNS}",
        ),
        (
            {"base-url": "http://h", "targets": [{"name": "buy", "url": "/", "header": {"X": "{b}"}}]},
            f"targets: buy: header: X: {{b}} {COLUMNS}",
        ),
        (
            {"url": "http://h/", "body": "{sku}", "header": "Content-Length: 5"},
            f"header: Content-Length: {VARIES}",
        ),
    ],
)
def test_a_placeholder_that_is_no_column_is_refused(values: dict[str, Any], fault: str) -> None:
    """The message names the place and lists the columns."""
    assert read_fault(**values) == f"spec.yaml: {fault}"


def test_without_data_braces_of_headers_and_bodies_are_text() -> None:
    """Only URLs can't have them."""
    spec = parse_spec(Source(None, {"url": "http://h/", "body": "{sku}", "header": "X: {price}"}))
    assert (spec.body, spec.headers[0].value) == ("{sku}", "{price}")
    with pytest.raises(SpecError, match=r"^--url: http://h/\{sku\} has the unknown placeholder \{sku\}; Oku"):
        parse_spec(Source(None, {"url": "http://h/{sku}"}))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("skus.csv", "skus.csv is not what a scan says of a file: name, format, digest, size, rows, columns"),
        ({**DATA, "digest": "x"}, "skus.csv: digest: x is not a SHA-256 digest"),
        ({**DATA, "rows": 0}, "skus.csv: rows: 0 is not between 1 and 1_000_000_000_000_000"),
        ({**DATA, "columns": ["a", "a"]}, "skus.csv: columns 1 and 2 are both called a"),
        ({**DATA, "format": "xls"}, "skus.csv: Invalid enum value 'xls' - at `$.format`"),
        ({**DATA, "more": 1}, "skus.csv: Object contains unknown field `more`"),
    ],
)
def test_data_that_no_scan_has_described_is_refused(data: object, fault: str) -> None:
    """Whoever submits a run by the API has to say what the file is."""
    assert read_fault(url="http://h/", data=data).startswith(f"spec.yaml: data: {fault}")


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


@pytest.mark.parametrize(
    "values",
    [{"http2": True}, {"engine": "nghttp2"}, {"http2": True, "engine": "nghttp2"}],
    ids=["http2", "engine", "both"],
)
def test_the_switch_and_the_engine_mean_the_same(values: dict[str, Any]) -> None:
    """Nobody has to know the name of the engine."""
    spec = parse_http2(values)
    assert (spec.http2, spec.engine) == (True, Engine.NGHTTP2)
    assert (spec.streams, spec.connections) == (10, None)


@pytest.mark.parametrize("values", [{}, {"http2": False}, {"engine": "httptools"}])
def test_http1_is_what_is_spoken_otherwise(values: dict[str, Any]) -> None:
    """Nothing of HTTP/2 is written into such a spec."""
    spec = parse_http2(values)
    assert not spec.http2
    assert spec.engine in HTTP1_ENGINES
    assert not {"http2", "streams", "connections"} & build_mapping(spec).keys()


@pytest.mark.parametrize("engine", HTTP1_ENGINES)
def test_an_engine_of_http1_does_not_speak_http2(engine: Engine) -> None:
    """A spec that asks for both is refused; neither of them wins."""
    fault = read_http2_fault(TARGET | {"http2": True, "engine": engine})
    assert fault == f"s.yaml: http2: the engine {engine} speaks HTTP/1.1, use nghttp2"


def test_the_engine_of_http2_does_not_speak_http1() -> None:
    """It cannot be told to."""
    fault = read_http2_fault(TARGET | {"http2": False, "engine": "nghttp2"})
    assert (
        fault == "s.yaml: http2: false is not possible with the engine nghttp2, use one of aiohttp, httptools"
    )


@pytest.mark.parametrize("key", ["streams", "connections"])
@pytest.mark.parametrize("engine", HTTP1_ENGINES)
def test_streams_and_connections_are_of_http2(engine: Engine, key: str) -> None:
    """A connection of HTTP/1.1 has one request at a time."""
    fault = read_http2_fault(TARGET | {"engine": engine, key: 5})
    assert fault == f"s.yaml: {key}: applies only to HTTP/2: the engine {engine} speaks HTTP/1.1, use http2"


@pytest.mark.parametrize("engine", sorted(USER_CODE_ENGINES))
@pytest.mark.parametrize("key", ["http2", "streams", "connections"])
def test_user_code_does_not_speak_http2(engine: Engine, key: str) -> None:
    """It is not told to use an engine that runs no user code."""
    fault = read_http2_fault({"engine": engine, "scenario": CODE, key: True if key == "http2" else 5})
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
    assert read_http2_fault(TARGET | {"http2": True} | values).startswith(f"s.yaml: {fault}")


@pytest.mark.parametrize(
    "header", ["TE: trailers", "te: Trailers", "Host: {i}.example", "X-Connection: close"]
)
def test_what_http2_allows_may_be_sent(header: str) -> None:
    """Who asks for trailers gets them, as with gRPC."""
    assert parse_http2({"http2": True, "header": header}).headers == (header,)


def test_headers_of_targets_are_held_to_the_same() -> None:
    """The error names the target."""
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
    spec = parse_http2({"http2": True} | values)
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
    targets = tuple(
        Target(name=str(number), url=URL, expect=Expectation(match=("same", "again")))
        for number in range(MOST_PATTERNS)
    )
    assert find_pattern_fault(Spec(targets=targets, expect_match=("same",))) is None


def test_patterns_are_compiled_in_advance() -> None:
    """Those of a message were checked when the run was submitted; one that was not is refused here."""
    assert not has_patterns(Spec())
    spec = Spec(expect_match=("(",))
    assert has_patterns(spec)
    with pytest.raises(PatternError):
        compile_patterns(spec)


_SCENARIO = f"scenario.py@sha256:{'0' * 64}:1:scenario.py"
_OPEN = {"stages": ["ramp=10s:0..10/s", "steady=10s:10/s"]}
_TARGETS = {
    "base_url": "http://127.0.0.1/",
    "targets": [{"name": "buy", "url": "/buy"}, {"name": "home", "url": "/"}],
}


@pytest.mark.parametrize(
    ("values", "threshold", "error"),
    [
        ({}, "p99 of buy < 1s", "the run has no target buy; it has one, without a name"),
        (_TARGETS, "p99 of sell < 1s", "the run has no target sell; it has buy, home"),
        ({}, "p99 < 1s during steady", "the run has no phase steady; it has only one, without a name"),
        (_OPEN, "p99 < 1s during soak", "the run has no phase soak; it has ramp, steady"),
        ({"warm_up": "1s"}, "ok > 1 during warmup", "the run has no phase warmup; it has warm-up, main"),
        ({}, "response_time p99 < 1s", "only the requests of a run with a rate have a response time"),
        ({}, "rate >= 0.9 of plan", "only a run with a rate has a plan"),
    ],
)
def test_a_threshold_on_what_the_run_does_not_have_is_refused(
    values: dict[str, Any], threshold: str, error: str
) -> None:
    """The line names the threshold and what the run has."""
    with pytest.raises(SpecError) as raised:
        parse_spec(Source("spec.yaml", {**values, "thresholds": ["ok > 1", threshold]}))
    assert str(raised.value) == f"spec.yaml: thresholds: {threshold}: {error}"


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        (_TARGETS, "p99 of buy < 1s: abort"),
        (_OPEN, "response_time p99 < 1s during steady"),
        (_OPEN, "rate >= 99% of plan over 10s: abort"),
        ({"warm_up": "1s"}, "ok > 1 during warm-up"),
    ],
)
def test_a_spec_with_thresholds_is_written_and_read_again_as_it_was(
    values: dict[str, Any], threshold: str
) -> None:
    """As JSON for the ledger, and under the keys of users."""
    spec = parse_spec(Source("spec", {**values, "thresholds": threshold}))

    assert spec.thresholds == (threshold,)
    assert decode_spec(encode_spec(spec)) == spec
    assert parse_spec(Source("spec", build_mapping(spec))) == spec


@pytest.mark.parametrize(
    ("threshold", "error"),
    [
        ("p99 of orders < 1s: abort", None),
        ('failed of "any name" < 1%', None),
        ("response_time p99 < 1s", None),
        ("response_time p99 of orders < 1s", "the requests that user code makes have no response time"),
        ("lateness p99 of orders < 1s", "the requests that user code makes have no lateness"),
    ],
)
def test_a_threshold_of_user_code_may_name_any_request(threshold: str, error: str | None) -> None:
    """Which names there are is known when they are counted; due times are those of iterations."""
    values = {"engine": "python", "scenario": _SCENARIO, **_OPEN, "thresholds": threshold}
    if error is None:
        assert parse_spec(Source("spec", values)).thresholds == (threshold,)
        return
    with pytest.raises(SpecError, match=error):
        parse_spec(Source("spec", values))


USER_CODE = f"locustfile.py@sha256:{'a' * 64}:10:locustfile.py"


def parse_code(**values: Any) -> Spec:
    """Parse the spec of a locustfile with these keys, too."""
    given = {"engine": "locust", "scenario": USER_CODE, "iterations": 10}
    return parse_spec(Source("s.yaml", given | values))


def test_clients_get_what_they_can_take() -> None:
    """Headers that are the same for all, TLS, a proxy and a limit of time."""
    spec = parse_code(
        header=["Team: a", "Filter: {x}"], insecure=True, proxy="http://proxy:3128", timeout="2s"
    )
    assert (len(spec.headers), spec.insecure, spec.timeout_s) == (2, True, 2.0)
    assert parse_code(keepalive=True).keepalive


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "keepalive",
            False,
            "s.yaml: keepalive: the clients of a locustfile keep connections; let it send Connection: close",
        ),
        (
            "header",
            "User: {i}",
            "s.yaml: header: User: {i} differs between requests; let the locustfile send it",
        ),
    ],
)
def test_what_they_cannot_is_refused(key: str, value: object, message: str) -> None:
    """In one line, with what to write instead."""
    with pytest.raises(UserError) as caught:
        parse_code(**{key: value})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("included", "message"),
    [
        (["locustfile.py"], "locustfile.py is the path of the scenario"),
        (["lib", "lib/a.py"], "lib/a.py cannot stand below lib, which is a file"),
        (["locustfile.py/a"], "locustfile.py/a cannot stand below locustfile.py, which is a file"),
    ],
)
def test_no_file_takes_the_place_of_another_one(included: list[str], message: str) -> None:
    """They stand in one folder when the code runs."""
    with pytest.raises(UserError) as caught:
        parse_code(include=[f"{path}@sha256:{'b' * 64}:3:a" for path in included])
    assert str(caught.value) == f"s.yaml: include: {message}"


def test_files_may_stand_in_folders() -> None:
    """Names that begin alike are different ones."""
    paths = ["lib/a.py", "lib/a", "lib.py", "libs"]
    assert len(parse_code(include=[f"{path}@sha256:{'b' * 64}:3:a" for path in paths]).include) == 4

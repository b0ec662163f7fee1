import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.runs.specs import http2_specs, plain_specs, specs, user_code_specs

from oku_core.errors import UserError
from oku_core.schedule.stage import Arrivals
from oku_core.spec.fields import FIELDS
from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.spec import Engine, Hook, Spec, decode_spec, encode_spec
from oku_core.spec.target import Target
from oku_core.spec.values.check import ExpectedStatus, JsonValue, SizeBound, list_codes
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.file_reference import CodeFile
from oku_core.spec.values.load_values import Late, StageText
from oku_core.spec.values.quantity import Rate
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.threshold import Threshold
from oku_core.spec.values.url import Url

KEYS = [field.key for field in FIELDS]
OWN_SERVERS_KEYS = [field.key for field in FIELDS if field.own_servers_only]
ASKS_FOR_AIOHTTP = ("proxy", "max-redirects", "cookies")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NEARLY_RIGHT = st.text("0123456789_.eEkmMsµ:-+/{}[]ihtpxacGET, \r\n٣", max_size=15) | st.sampled_from(
    [
        "1e400", "1e9999", "nan", "-1", "0", "1_0", " 10 s ", "3..0s", "0..0s", "exp:", "lognormal:40ms",
        "http://[::1", "http://h:99999/", "http://{i}/", "2xx,", "600", "get", "\ud800", "9" * 5000,
        "9223372036854775808",
    ]
)  # fmt: skip


def read_fault(*sources: Source) -> str:
    """Return the error for wrong sources."""
    with pytest.raises(SpecError) as caught:
        parse_spec(*sources)
    return str(caught.value)


def test_without_any_values_the_spec_is_the_default() -> None:
    """An empty command line and an empty file change nothing."""
    assert parse_spec() == Spec() == parse_spec(Source("spec.yaml", {}))


def test_every_key_fills_its_attribute() -> None:
    """Each key of the table sets the attribute of its row, and every attribute has a key."""
    written: dict[str, object] = {
        "requests": "1M", "method": "post", "header": "A: b", "body": "x", "concurrency": "1k",
        "workers": 3, "engine": "aiohttp", "timeout": "500ms", "grace": 0, "stop-when-down": "45s",
        "start-within": "30s", "give-up-after": "5m", "expect-status": "2xx,404", "range-size": "10k",
        "servers": 2, "delay": " 0..3s ", "seed": 7, "name": "night", "cacert": "ca.pem", "cert": "me.pem",
        "key": "me.key", "insecure": True, "proxy": "http://proxy:3128", "max-redirects": "5",
        "cookies": True, "keepalive": False, "max-rate": "2k/s", "duration": "10m", "warm-up": "30s",
        "expect-body": "ok", "expect-match": "o+", "expect-json": "/id=17",
        "expect-header": "X-Cache: HIT", "expect-size": "> 0", "expect-within": "500ms",
        "thresholds": "p99 < 1s",
    }  # fmt: skip
    expected = Spec(
        requests=1_000_000, method="POST", headers=(Header("A: b"), Header("Connection: close")), body="x",
        concurrency=1000, workers=3, engine=Engine.AIOHTTP, timeout_s=0.5, grace_s=0.0,
        stop_when_down_s=45.0, start_within_s=30.0, give_up_after_s=300.0,
        expect_status=(ExpectedStatus("2xx"), ExpectedStatus("404")), range_size=10_000, servers=2,
        delay=parse_delay("0..3s"), seed=7, name="night", cacert="ca.pem", cert="me.pem", key="me.key",
        insecure=True, proxy=Url("http://proxy:3128"), max_redirects=5, cookies=True, keepalive=False,
        max_rate=Rate("2k/s"), duration_s=600.0, warm_up_s=30.0, expect_body=("ok",), expect_match=("o+",),
        expect_json=(JsonValue("/id=17"),), expect_header=(Header("X-Cache: HIT"),),
        expect_size=(SizeBound("> 0"),), expect_within_s=0.5, thresholds=(Threshold("p99 < 1s"),),
    )  # fmt: skip
    assert parse_spec(Source(None, written)) == expected
    assert parse_spec(Source(None, {"url": "http://h/{i}"})) == Spec(
        urls=(Url("http://h/{i}"),), requests=1000
    )
    opened: dict[str, object] = {"stages": "1m:5/s", "arrivals": "poisson", "late": "send"}
    assert parse_spec(Source(None, opened)) == Spec(
        requests=300, stages=(StageText("1m:5/s"),), arrivals=Arrivals.POISSON, late=Late("send"),
        concurrency=10,
    )  # fmt: skip
    assert parse_spec(Source(None, {"rate": "5/s", "requests": 10})).rate == "5/s"
    multiplexed: dict[str, object] = {"http2": True, "streams": 25, "connections": "4"}
    assert parse_spec(Source(None, multiplexed | {"url": "http://h/"})) == Spec(
        urls=(Url("http://h/"),), requests=1000, engine=Engine.NGHTTP2, http2=True, streams=25, connections=4,
        concurrency=100,
    )  # fmt: skip
    several: dict[str, object] = {"base-url": "http://h", "targets": [{"name": "home", "url": "/"}]}
    assert parse_spec(Source(None, several)) == Spec(
        requests=1000, base_url=Url("http://h"), targets=(Target(name="home", url="/"),)
    )
    digest = "0" * 64
    data = {"name": "d.csv", "format": "csv", "digest": digest, "size": 9, "rows": 3, "columns": ["a"]}
    given = parse_spec(Source(None, {"data": data | {"index": digest}, "url": "http://h/{a}"})).data
    assert given is not None
    assert msgspec.to_builtins(given) == data | {"index": digest, "repeat": False, "columns": ("a",)}
    coded: dict[str, object] = {
        "engine": "locust", "scenario": f"a.py@sha256:{digest}:1:a.py", "base-url": "http://h",
        "include": [f"lib/b.py@sha256:{digest}:0:b.py"], "iterations": "1M", "users": 200,
        "iteration-timeout": "5s", "user-classes": ["Buyer"], "tags": "a", "exclude-tags": ["b", "c"],
    }  # fmt: skip
    expected = Spec(
        engine=Engine.LOCUST, scenario=CodeFile(f"a.py@sha256:{digest}:1:a.py"), base_url=Url("http://h"),
        include=(CodeFile(f"lib/b.py@sha256:{digest}:0:b.py"),), requests=1_000_000, concurrency=200,
        iteration_timeout_s=5.0, user_classes=("Buyer",), tags=("a",),
        exclude_tags=("b", "c"),
    )  # fmt: skip
    assert parse_spec(Source(None, coded)) == expected
    hooked: dict[str, object] = {
        "engine": "python",
        "scenario": coded["scenario"],
        "hooks": ["teardown", "setup"],
    }
    assert parse_spec(Source(None, hooked)).hooks == (Hook.SETUP, Hook.TEARDOWN)
    assert set(KEYS) == {*written, *opened, *multiplexed, *several, *coded, *hooked, "url", "rate", "data"}


def test_what_a_spec_leaves_out_follows_from_the_rest() -> None:
    """Who says nothing of their number tries something out, and it may be somebody's service."""
    cases: list[tuple[list[dict[str, object]], int]] = [
        ([{}], 100_000),
        ([{"url": "http://h/"}], 1000),
        ([{}, {"url": ["http://h/", "http://g/"]}], 1000),
        ([{"url": "http://h/"}, {"requests": "5k"}], 5000),
        ([{"requests": 7}, {"url": "http://h/"}], 7),
    ]
    for sources, requests in cases:
        assert parse_spec(*(Source("spec.yaml", values) for values in sources)).requests == requests
    other_cases: list[tuple[dict[str, object], str]] = [
        ({}, "GET"),
        ({"body": "x"}, "POST"),
        ({"body": ""}, "POST"),
        ({"body": "x", "method": "get"}, "GET"),
    ]
    for values, method in other_cases:
        # A body is posted. As with curl, which so many have learned from.
        assert parse_spec(Source(None, values)).method == method
    more_cases: list[tuple[dict[str, object], tuple[str, ...]]] = [
        ({"body": '{"id": {i}}'}, ("Content-Type: application/json",)),
        ({"body": "a=1&b={i}"}, ("Content-Type: application/x-www-form-urlencoded",)),
        ({"body": "[1]", "header": "A: b"}, ("A: b", "Content-Type: application/json")),
        ({"body": "[1]", "header": "content-type: text/plain"}, ("content-type: text/plain",)),
        ({"body": "id {i}"}, ()),
        ({}, ()),
    ]
    for values, headers in more_cases:
        # Json is sent as json and a form as a form.
        assert parse_spec(Source(None, values)).headers == headers


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "url": st.just("http://h/"), "body": st.sampled_from(["", "x", "{}", '{"i": {i}}']),
            "header": st.sampled_from([[], ["A: b"], ["Content-Type: a/b"]]),
        },
    )
)  # fmt: skip
def test_what_follows_from_other_keys_is_written_with_the_spec(values: dict[str, object]) -> None:
    """A stored spec says it all: what the rules are does not matter once it is read again."""
    spec = parse_spec(Source(None, values))
    assert {"requests", "method"} <= build_mapping(spec).keys()
    assert parse_spec(Source(None, build_mapping(spec))) == spec


@given(specs() | http2_specs() | user_code_specs())
def test_a_spec_survives_being_written(spec: Spec) -> None:
    """The mapping has the keys of the table, and is read back as an equal spec, even by way of JSON."""
    mapping = build_mapping(spec)
    assert parse_spec(Source("spec.yaml", mapping)) == spec
    assert parse_spec(Source("spec.json", json.loads(json.dumps(mapping)))) == spec
    assert decode_spec(encode_spec(spec)) == spec


@given(specs() | http2_specs())
def test_a_written_spec_has_only_plain_values(spec: Spec) -> None:
    """The mapping has only values that YAML and JSON know, and only keys that apply."""
    mapping = build_mapping(spec)
    for value in mapping.values():
        assert type(value) in {str, int, float, bool, list}
    assert list(mapping) == [key for key in KEYS if key in mapping]
    assert not set(mapping) & ({"url"} if spec.brings_servers else set(OWN_SERVERS_KEYS))


@given(first=plain_specs(), second=plain_specs())
def test_a_later_source_overrides_key_by_key(first: Spec, second: Spec) -> None:
    """A value from the command line wins; keys that it does not give keep the value from the file."""
    own = {*OWN_SERVERS_KEYS, *ASKS_FOR_AIOHTTP}
    base, over = ({k: v for k, v in build_mapping(spec).items() if k not in own} for spec in (first, second))
    del over["requests"]
    merged = parse_spec(Source("spec.yaml", base), Source(None, over))
    assert merged == parse_spec(Source(None, base | over))
    assert merged.requests == first.requests
    assert merged.concurrency == second.concurrency


CONTRADICTIONS: dict[str, tuple[dict[str, object], str]] = {
    "a base URL alone": ({"base-url": "http://h"},
        "base-url: is what comes before the URLs of targets, but targets are not given"),
    "a URL beside targets": ({"url": "http://h/", "targets": [{"url": "/"}]},
        "url: cannot be combined with targets; each target has its own"),
    "a method beside targets": ({"method": "PUT", "targets": [{"url": "/"}]},
        "method: cannot be combined with targets; each target has its own"),
    "a body beside targets": ({"body": "", "targets": [{"url": "/"}]},
        "body: cannot be combined with targets; each target has its own"),
    "a path beside a whole URL": ({"targets": [{"url": "http://h/"}, {"name": "a", "url": "/"}]},
        "targets: a: url: begins with a path, but base-url is not given"),
    "delays of a base URL": ({"delay": "1s", "base-url": "http://h", "targets": [{"url": "/"}]},
        "delay: applies only to Oku's own delay servers and cannot be combined with a URL"),
    "a length that is not that of the body": (
        {"targets": [{"name": "a", "url": "/", "json": [1], "header": "Content-Length: 4"}]},
        "targets: a: header: Content-Length: 4: the body has 3 bytes; leave the header out, Oku sends it"),
    "a length of a body that varies": (
        {"targets": [{"name": "a", "url": "/", "body": "{i}", "header": "Content-Length: 3"}]},
        (
            "targets: a: header: Content-Length: 3: the length of a body with {i} in it varies; "
            "leave the header out, Oku sends it"
        ),
    ),
    "chunks": (
        {"targets": [{"name": "a", "url": "/", "header": "Transfer-Encoding: chunked"}]},
        (
            "targets: a: header: Transfer-Encoding: chunked: bodies are sent whole, with their length; "
            "leave the header out"
        ),
    ),
    "two hosts": ({"targets": [{"name": "a", "url": "/", "header": ["Host: a", "host: b"]}]},
        "targets: a: header: Host: is given twice"),
    "a connection that is kept": (
        {"keepalive": False, "targets": [{"name": "a", "url": "/", "header": "Connection: keep-alive"}]},
        "targets: a: header: the header Connection contradicts keepalive"),
    "a body of HEAD": ({"method": "HEAD", "expect-json": "/a=1"},
        "expect-json: cannot be combined with HEAD, whose answers have no body"),
    "a body of a target's HEAD": (
        {"targets": [{"name": "a", "url": "/", "method": "HEAD", "expect": {"match": "x"}}]},
        "targets: a: method: HEAD cannot be combined with expect: match: its answers have no body"),
    "a body of all targets and of HEAD": (
        {"expect-body": "x", "targets": [{"name": "a", "url": "/", "method": "head"}]},
        "targets: a: method: HEAD cannot be combined with expect-body: its answers have no body"),
}  # fmt: skip


@pytest.mark.parametrize(("values", "fault"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_what_contradicts_targets_is_refused(values: dict[str, object], fault: str) -> None:
    """The line names the key, the target, and what is allowed."""
    assert read_fault(Source("spec.yaml", values)) == f"spec.yaml: {fault}"


def test_targets_without_a_host_ask_the_delay_servers() -> None:
    """A mix of requests can be tried out without a service."""
    spec = parse_spec(Source("spec.yaml", {"targets": [{"url": "/a"}, {"url": "?b"}], "delay": "20ms"}))
    assert spec.brings_servers
    assert spec.requests == 100_000
    assert not parse_spec(Source("spec.yaml", {"targets": [{"url": "http://h/"}]})).brings_servers
    # A url as a flag does not override targets of a file.
    targets = Source("spec.yaml", {"targets": [{"url": "/"}]})
    fault = "--url: cannot be combined with targets; each target has its own"
    assert read_fault(targets, Source(None, {"url": "http://h/"})) == fault
    assert parse_spec(targets, Source(None, {"base-url": "http://h"})).base_url == "http://h"
    # A type that all targets have is not that of their bodies.
    target = {"name": "a", "url": "/", "json": {"id": 1}}
    typed = parse_spec(Source("spec.yaml", {"targets": [target], "header": "content-type: a/b"}))
    assert typed.targets[0].headers == ()
    assert parse_spec(Source("spec.yaml", {"targets": [target]})).targets[0].headers == (
        "Content-Type: application/json",
    )


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("request", "request: unknown key, did you mean requests?"),
        ("Requests", "Requests: unknown key, did you mean requests?"),
        ("expect_statuses", "expect_statuses: unknown key, did you mean expect-status?"),
        ("timeout_s", "timeout_s: unknown key, did you mean timeout?"),
        ("xyz", f"xyz: unknown key, known keys are {', '.join(KEYS)}"),
        ("a\nb", rf"'a\nb': unknown key, known keys are {', '.join(KEYS)}"),
        (None, f"null: unknown key, known keys are {', '.join(KEYS)}"),
        (5, f"5: unknown key, known keys are {', '.join(KEYS)}"),
    ],
)
def test_the_error_for_an_unknown_key_suggests_the_nearest(written: Any, fault: str) -> None:
    """It lists all keys if none is similar."""
    assert read_fault(Source("spec.yaml", {written: 1})) == f"spec.yaml: {fault}"


def test_a_key_occurs_once_in_a_source() -> None:
    """With two spellings of one key, chance would decide which one counts."""
    source = Source("spec.yaml", {"range-size": 1, "range_size": 2})
    assert read_fault(source) == "spec.yaml: range-size: is given twice"
    # A wrong value that is overridden does not matter. Only the value that counts is parsed.
    assert parse_spec(Source("spec.yaml", {"workers": "many"}), Source(None, {"workers": 2})).workers == 2
    for key in ["range-size", "range_size"]:
        # A key may be written with underscores. Python and many YAML files write keys this way.
        assert parse_spec(Source("spec.yaml", {key: 5})).range_size == 5
    cases: list[tuple[Any, str]] = [([1, 2], "[1, 2]"), (None, "null"), ("requests", "requests"), (5, "5")]
    for document, shown in cases:
        # A source is a mapping. The error says so if a file holds anything else.
        assert (
            read_fault(Source("spec.yaml", document))
            == f"spec.yaml: {shown} is not a mapping of keys to values"
        )


@pytest.mark.parametrize("key", OWN_SERVERS_KEYS)
def test_keys_of_own_servers_cannot_be_combined_with_a_url(key: str) -> None:
    """The error names the place of the key that would have no effect, wherever the URL is."""
    fault = f"{key}: applies only to Oku's own delay servers and cannot be combined with a URL"
    assert (
        read_fault(Source("spec.yaml", {key: "1"}), Source(None, {"url": "http://h/"}))
        == f"spec.yaml: {fault}"
    )
    assert read_fault(Source("spec.yaml", {"url": "http://h/"}), Source(None, {key: "1"})) == f"--{fault}"


def test_a_private_key_needs_a_certificate() -> None:
    """It would have no effect on its own."""
    fault = "key: is the key of a certificate, but cert is not given"
    assert read_fault(Source("spec.yaml", {"key": "a.key"})) == f"spec.yaml: {fault}"
    assert parse_spec(Source("spec.yaml", {"key": "a.key"}), Source(None, {"cert": "a"})).key == "a.key"
    # An error in a spec is for the user. Every process prints it without a traceback.
    assert issubclass(SpecError, UserError)
    # Other engines accept the defaults of keys for aiohttp.
    values = {"engine": "httptools", "max-redirects": 0, "cookies": False}
    assert parse_spec(Source("spec.yaml", values)) == Spec(engine=Engine.HTTPTOOLS)


def check_reading(values: Mapping[str, object]) -> None:
    """Check that a source gives a valid spec, or an error of one line that begins with the place."""
    fault = "spec.yaml: "
    try:
        spec = parse_spec(Source("spec.yaml", values))
    except SpecError as error:
        fault = str(error)
    else:
        assert parse_spec(Source("again", build_mapping(spec))) == spec
        assert decode_spec(encode_spec(spec)) == spec
        assert list_codes(spec.expect_status)
    assert fault.startswith("spec.yaml: ")
    assert fault.isprintable()
    assert len(fault) < 2000


@settings(max_examples=30 * settings().max_examples)
@given(key=st.sampled_from(KEYS), value=JSON_VALUES | NEARLY_RIGHT | st.lists(NEARLY_RIGHT, max_size=2))
def test_any_value_of_a_key_gives_a_spec_or_one_line(key: str, value: object) -> None:
    """The parser raises only `SpecError`, and a spec that it accepts can be sent."""
    check_reading({key: value})


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(), JSON_VALUES | NEARLY_RIGHT))
def test_any_mapping_gives_a_spec_or_one_line(values: dict[str, object]) -> None:
    """The same holds for several keys together, whether they are known or not."""
    check_reading(values)

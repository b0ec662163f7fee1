import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oku_core.errors import UserError
from oku_core.spec import (
    FIELDS,
    INDEX_PLACEHOLDER,
    Engine,
    Source,
    Spec,
    SpecError,
    build_expected_statuses,
    build_mapping,
    parse_spec,
)

KEYS = [field.key for field in FIELDS]
OWN_SERVERS_KEYS = [field.key for field in FIELDS if field.own_servers_only]

COUNTS = st.none() | st.integers(1, 1000)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P"], include_characters=" "), max_size=100
)
URLS = st.sampled_from(
    ["http://localhost/{i}", "https://[::1]:8443/?a={i}", "http://user@h.example", "http://h/"]
)
HEADERS = st.builds(
    "{}: {}".format, st.sampled_from(["A", "X-Id"]), st.sampled_from(["", "b", "{i}", "a: b\tc"])
)
STATUSES = st.integers(100, 599).map(str) | st.sampled_from(["1xx", "2xx", "5xx"])
DELAYS = st.sampled_from(["0s", "20ms", "0..3s", "5ms..80ms", "exp:50ms", "lognormal:40ms,0.5"])

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

WRONG_VALUES: list[tuple[str, object, str]] = [
    ("requests", 0, "0 is not at least 1"),
    ("requests", "-5", "-5 is not at least 1"),
    ("requests", "1e400", "1e400 is not at most 1_000_000_000_000_000"),
    ("requests", 10**15 + 1, "1000000000000001 is not at most 1_000_000_000_000_000"),
    ("requests", "1.5", "1.5 is not a whole number"),
    ("requests", "many", "many is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("requests", float("nan"), "nan is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("requests", True, "true is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("requests", None, "null is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("requests", [5], "[5] is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("requests", "٣", "٣ is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("url", "h/{i}", "h/{i} has no scheme, write http://h/{i}"),
    ("url", [], "there is no URL"),
    ("method", True, "true is not text, put it in quotes"),
    ("method", "GET /", "GET / is not a method such as GET or POST"),
    ("header", "X-Id", "X-Id is not of the form 'Name: value'"),
    ("header", "A: b\r\nC: d", r"'A: b\r\nC: d' is not of the form 'Name: value'"),
    ("body", None, "null is not text"),
    ("body", 42, "42 is not text, put it in quotes"),
    ("body", {"id": 1}, "{'id': 1} is not text"),
    ("concurrency", 0, "0 is not at least 1"),
    ("concurrency", "2M", "2M is not at most 1_000_000"),
    ("workers", 0, "0 is not at least 1"),
    ("workers", 10_001, "10001 is not at most 10_000"),
    ("engine", "steam", "steam is not one of aiohttp"),
    ("engine", None, "null is not one of aiohttp"),
    ("engine", ["aiohttp"], "['aiohttp'] is not one of aiohttp"),
    ("timeout", 0, "0 is not at least 1ms"),
    ("timeout", "-10s", "-10s is not at least 1ms"),
    ("timeout", "999us", "999us is not at least 1ms"),
    ("timeout", "2h", "2h is not at most 1h"),
    ("timeout", "1e400", "1e400 is not a duration such as 10s, 500ms or 2m"),
    ("timeout", False, "false is not a duration such as 10s, 500ms or 2m"),
    ("grace", -0.1, "-0.1 is not at least 0s"),
    ("grace", "3600.5s", "3600.5s is not at most 1h"),
    ("expect-status", 600, "600 is not a status such as 200 or 2xx"),
    ("expect-status", "6xx", "6xx is not a status such as 200 or 2xx"),
    ("expect-status", [], "there is no status"),
    ("range-size", 0, "0 is not at least 1"),
    ("range-size", "1e10", "1e10 is not at most 1_000_000_000"),
    ("servers", 0, "0 is not at least 1"),
    ("servers", 1001, "1001 is not at most 1_000"),
    ("delay", "2h", "2h is not between 0s and 1h"),
    ("delay", "fast", "fast is not a delay such as 20ms, 0..3s, 5ms..80ms, exp:50ms or lognormal:40ms,0.5"),
    ("seed", -1, "-1 is not at least 0"),
    ("seed", 2**63, "9223372036854775808 is not at most 9_223_372_036_854_775_807"),
    ("seed", "0.5", "0.5 is not a whole number"),
    ("name", "a\nb", r"'a\nb' is not a name of up to 100 printable characters"),
    ("name", 2024, "2024 is not text, put it in quotes"),
]


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Any spec that a user can have written."""
    urls = tuple(draw(st.lists(URLS, max_size=3)))
    own: dict[str, Any] = {}
    if not urls:
        own = {
            "servers": draw(COUNTS),
            "delay": draw(DELAYS),
            "seed": draw(st.integers(0, 2**63 - 1)),
        }
    return Spec(
        requests=draw(st.integers(1, 10**15)),
        urls=urls,
        method=draw(st.sampled_from(["GET", "POST", "PURGE"])),
        headers=tuple(draw(st.lists(HEADERS, max_size=3))),
        body=draw(st.none() | TEXTS),
        concurrency=draw(st.integers(1, 1_000_000)),
        workers=draw(COUNTS),
        engine=draw(st.sampled_from(Engine)),
        timeout_s=draw(st.floats(0.001, 3600)),
        grace_s=draw(st.none() | st.floats(0, 3600)),
        expect_status=tuple(draw(st.lists(STATUSES, min_size=1, max_size=3))),
        range_size=draw(COUNTS),
        name=draw(NAMES),
        **own,
    )


def read_fault(*sources: Source) -> str:
    """What the user is told about wrong sources."""
    with pytest.raises(SpecError) as caught:
        parse_spec(*sources)
    return str(caught.value)


def test_without_a_word_a_spec_is_complete() -> None:
    """A hundred thousand GETs to Oku's own servers: every key has a default."""
    spec = parse_spec()
    assert spec == Spec() == parse_spec(Source("spec.yaml", {}))
    assert (spec.requests, spec.method, spec.brings_servers) == (100_000, "GET", True)
    assert (spec.concurrency, spec.timeout_s, spec.delay, spec.seed) == (100, 10.0, "0s", 0)
    assert build_expected_statuses(spec) == {200}


def test_every_key_fills_its_attribute() -> None:
    """Each key of the table is read into the attribute of that row, and every attribute has a key."""
    written: dict[str, object] = {
        "requests": "1M",
        "method": "post",
        "header": "A: b",
        "body": "x",
        "concurrency": "1k",
        "workers": 3,
        "engine": "aiohttp",
        "timeout": "500ms",
        "grace": 0,
        "expect-status": "2xx,404",
        "range-size": "10k",
        "servers": 2,
        "delay": " 0..3s ",
        "seed": 7,
        "name": "night",
    }
    expected = Spec(
        requests=1_000_000,
        method="POST",
        headers=("A: b",),
        body="x",
        concurrency=1000,
        workers=3,
        engine=Engine.AIOHTTP,
        timeout_s=0.5,
        grace_s=0.0,
        expect_status=("2xx", "404"),
        range_size=10_000,
        servers=2,
        delay="0..3s",
        seed=7,
        name="night",
    )
    assert parse_spec(Source(None, written)) == expected
    assert parse_spec(Source(None, {"url": "http://h/{i}"})) == Spec(urls=("http://h/{i}",))
    assert set(KEYS) == {*written, "url"}
    assert {field.attribute for field in FIELDS} == set(Spec.__struct_fields__)


@given(specs())
def test_a_spec_survives_being_written(spec: Spec) -> None:
    """Under the names of the table, as JSON too, it is read back to an equal spec."""
    mapping = build_mapping(spec)
    assert parse_spec(Source("spec.yaml", mapping)) == spec
    assert parse_spec(Source("spec.json", json.loads(json.dumps(mapping)))) == spec


@given(specs())
def test_a_spec_survives_the_wire(spec: Spec) -> None:
    """A worker gets the spec that the coordinator has."""
    assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec


@given(specs())
def test_what_is_written_is_plain(spec: Spec) -> None:
    """The mapping has nothing that YAML or JSON would not know, and no key that does not apply."""
    mapping = build_mapping(spec)
    for value in mapping.values():
        assert type(value) in {str, int, float, list}
    assert list(mapping) == [key for key in KEYS if key in mapping]
    assert not set(mapping) & ({"url"} if spec.brings_servers else set(OWN_SERVERS_KEYS))


@given(specs())
def test_what_is_expected_is_a_set_of_statuses(spec: Spec) -> None:
    """Every status of the spec, and every one of the hundred that an `xx` stands for, is in it."""
    statuses = build_expected_statuses(spec)
    expected = {
        code
        for code in range(100, 600)
        for item in spec.expect_status
        if item in {str(code), f"{code // 100}xx"}
    }
    assert statuses == expected
    assert statuses


@given(first=specs(), second=specs())
def test_a_later_source_overrides_key_by_key(first: Spec, second: Spec) -> None:
    """What the command line says stands; what it leaves out is that of the file."""
    own = set(OWN_SERVERS_KEYS)
    base, over = ({k: v for k, v in build_mapping(spec).items() if k not in own} for spec in (first, second))
    del over["requests"]
    merged = parse_spec(Source("spec.yaml", base), Source(None, over))
    assert merged == parse_spec(Source(None, base | over))
    assert merged.requests == first.requests
    assert merged.concurrency == second.concurrency


def test_a_wrong_value_that_is_overridden_does_not_matter() -> None:
    """Only what counts is read."""
    assert parse_spec(Source("spec.yaml", {"workers": "many"}), Source(None, {"workers": 2})).workers == 2


@pytest.mark.parametrize(("grace", "drain_s"), [({}, 7.0), ({"grace": 0}, 0.0), ({"grace": "20s"}, 20.0)])
def test_requests_in_flight_may_go_on_until_their_timeout(grace: dict[str, object], drain_s: float) -> None:
    """When a run is stopped; unless the spec says how long."""
    assert parse_spec(Source(None, {"timeout": 7, **grace})).drain_s == drain_s


@pytest.mark.parametrize("key", ["range-size", "range_size"])
def test_a_key_may_be_written_with_underscores(key: str) -> None:
    """As Python and many YAML files have it."""
    assert parse_spec(Source("spec.yaml", {key: 5})).range_size == 5


def test_the_fields_of_the_help_are_in_order() -> None:
    """Each key once, with a text that says what it is; what can be given several times is a tuple."""
    assert len(set(KEYS)) == len(KEYS)
    for field in FIELDS:
        assert field.help.endswith(".")
        assert field.metavar
        assert field.repeatable == isinstance(getattr(Spec(), field.attribute), tuple)
    assert INDEX_PLACEHOLDER in next(field.help for field in FIELDS if field.key == "url")


@pytest.mark.parametrize(("key", "value", "fault"), WRONG_VALUES)
def test_a_wrong_value_is_told_with_place_and_what_is_allowed(key: str, value: object, fault: str) -> None:
    """One line, the same from every source but for the place."""
    assert read_fault(Source("spec.yaml", {key: value})) == f"spec.yaml: {key}: {fault}"
    assert read_fault(Source(None, {key: value})) == f"--{key}: {fault}"


def test_every_key_has_a_wrong_value() -> None:
    """No field is left without a test of its error."""
    assert {key for key, _, _ in WRONG_VALUES} == set(KEYS)


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("requests", 1, 1),
        ("requests", "1e15", 10**15),
        ("concurrency", "1M", 1_000_000),
        ("timeout", "1ms", 0.001),
        ("timeout", " 10 s ", 10.0),
        ("timeout", "1h", 3600.0),
        ("grace", 0, 0.0),
        ("seed", 0, 0),
        ("seed", "9223372036854775807", 2**63 - 1),
        ("seed", 2**63 - 1, 2**63 - 1),
        ("delay", "0..0s", "0..0s"),
        ("name", "x" * 100, "x" * 100),
        ("name", "", ""),
        ("body", "", ""),
    ],
)
def test_the_last_value_that_is_allowed_is_allowed(key: str, value: object, read: object) -> None:
    """Limits are part of what they limit."""
    attribute = next(field.attribute for field in FIELDS if field.key == key)
    assert getattr(parse_spec(Source(None, {key: value})), attribute) == read


def test_a_long_value_is_cut() -> None:
    """A name of a thousand letters does not fill the terminal."""
    fault = read_fault(Source(None, {"name": "x" * 1000}))
    assert fault.endswith(" is not a name of up to 100 printable characters")
    assert len(fault) < 200
    assert read_fault(Source(None, {"name": "x" * 101})).startswith("--name: 'xxx")


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("request", "request: unknown key, did you mean requests?"),
        ("Requests", "Requests: unknown key, did you mean requests?"),
        ("expect_statuses", "expect_statuses: unknown key, did you mean expect-status?"),
        ("timeout_s", "timeout_s: unknown key, did you mean timeout?"),
        ("xyz", f"xyz: unknown key, known are {', '.join(KEYS)}"),
        ("a\nb", rf"'a\nb': unknown key, known are {', '.join(KEYS)}"),
        (None, f"null: unknown key, known are {', '.join(KEYS)}"),
        (5, f"5: unknown key, known are {', '.join(KEYS)}"),
    ],
)
def test_an_unknown_key_is_told_the_nearest(written: Any, fault: str) -> None:
    """Or all keys, where none is near."""
    assert read_fault(Source("spec.yaml", {written: 1})) == f"spec.yaml: {fault}"


def test_a_key_stands_in_a_source_once() -> None:
    """Two spellings of one key would leave it to chance which counts."""
    source = Source("spec.yaml", {"range-size": 1, "range_size": 2})
    assert read_fault(source) == "spec.yaml: range-size: is given twice"


@pytest.mark.parametrize(
    ("document", "shown"), [([1, 2], "[1, 2]"), (None, "null"), ("requests", "requests"), (5, "5")]
)
def test_a_source_is_a_mapping(document: Any, shown: str) -> None:
    """A file that holds something else is told so."""
    assert (
        read_fault(Source("spec.yaml", document)) == f"spec.yaml: {shown} is not a mapping of keys to values"
    )


@pytest.mark.parametrize("key", OWN_SERVERS_KEYS)
def test_what_is_for_own_servers_does_not_go_with_a_url(key: str) -> None:
    """The error names the place of the key that would have no effect, wherever the URL stands."""
    fault = f"{key}: is for Oku's own delay servers, it does not go together with url"
    assert (
        read_fault(Source("spec.yaml", {key: "1"}), Source(None, {"url": "http://h/"}))
        == f"spec.yaml: {fault}"
    )
    assert read_fault(Source("spec.yaml", {"url": "http://h/"}), Source(None, {key: "1"})) == f"--{fault}"


def test_an_error_in_a_spec_is_for_the_user() -> None:
    """Every process prints it without a traceback."""
    assert issubclass(SpecError, UserError)


def check_reading(values: Mapping[str, object]) -> None:
    """A spec that is whole, or one line that begins with the place."""
    fault = "spec.yaml: "
    try:
        spec = parse_spec(Source("spec.yaml", values))
    except SpecError as error:
        fault = str(error)
    else:
        assert parse_spec(Source("again", build_mapping(spec))) == spec
        assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec
        assert build_expected_statuses(spec)
    assert fault.startswith("spec.yaml: ")
    assert fault.isprintable()
    assert len(fault) < 2000


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=150)
@given(value=JSON_VALUES | NEARLY_RIGHT | st.lists(NEARLY_RIGHT, max_size=2))
def test_any_value_of_a_key_gives_a_spec_or_one_line(key: str, value: object) -> None:
    """Whatever stands in a file, the user never meets another exception, and what is accepted can be sent."""
    check_reading({key: value})


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(), JSON_VALUES | NEARLY_RIGHT))
def test_any_mapping_gives_a_spec_or_one_line(values: dict[str, object]) -> None:
    """The same for several keys together, known or not."""
    check_reading(values)

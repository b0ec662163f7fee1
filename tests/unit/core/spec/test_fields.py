import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oku_core.spec.fields import FIELD_BY_KEY, FIELDS, Field, FieldGroup, describe_default
from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import INDEX_PLACEHOLDER

KEYS = [field.key for field in FIELDS]

SCANNED = "name, format, digest, size, rows, columns, index, repeat"
CODE = "PATH@sha256:DIGEST:SIZE:NAME"
WRONG_VALUES: list[tuple[str, object, str]] = [
    ("scenario", "a.py", f"a.py is not {CODE}; oku run reads a file"),
    ("scenario", "/a.py@sha256:1:a", f"/a.py@sha256:1:a is not of the form {CODE}"),
    ("scenario", "../a.py@sha256:1:a", f"../a.py@sha256:1:a is not of the form {CODE}"),
    ("include", ["a.py"], f"a.py is not {CODE}; oku run reads a file"),
    ("include", [f"a.py@sha256:{'0' * 64}:1:a"] * 2, "two files have the same path"),
    ("hooks", ["begin"], "['begin'] is not a list of setup, teardown"),
    ("hooks", [["setup"]], "[['setup']] is not a list of setup, teardown"),
    ("iterations", 0, "0 is not at least 1"),
    ("users", "many", "many is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("iteration-timeout", "2h", "2h is not at most 1h"),
    ("user-classes", [""], "a name is empty"),
    ("tags", "a\nb", r"'a\nb' is not a name of up to 100 printable characters"),
    ("exclude-tags", 5, "5 is not text, put it in quotes"),
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
    ("url", [], "no URL is given"),
    ("method", True, "true is not text, put it in quotes"),
    ("method", "GET /", "GET / is not a method such as GET or POST"),
    ("base-url", "shop", "shop has no scheme, write http://shop"),
    ("base-url", "http://h/?a", "http://h/?a has ? in it; a base URL has scheme, host, port and path"),
    ("targets", "/", "/ is not a list of mappings such as {name: home, url: /}"),
    ("targets", [{"url": "/", "weight": 0}], "number 1: weight: 0 is not between 1 and 1_000"),
    ("expect-body", [], "no text is given"),
    ("expect-match", [], "no regular expression is given"),
    ("expect-json", "id=1", "id=1 is not a JSON pointer and its value, such as /user/id=17"),
    ("expect-header", "X-Cache", "X-Cache is not of the form 'Name: value'"),
    ("expect-size", "big", "big is not a size such as 1kB, > 0 or <= 10kB"),
    ("expect-within", 0, "0 is not between 1ms and 1h"),
    ("header", "X-Id", "X-Id is not of the form 'Name: value'"),
    ("header", "A: b\r\nC: d", r"'A: b\r\nC: d' has line breaks or control characters in its value"),
    ("body", None, "null is not text"),
    ("body", 42, "42 is not text, put it in quotes"),
    ("body", {"id": 1}, "{'id': 1} is not text"),
    ("duration", 0, "0 is not at least 1ms"),
    ("duration", "31d", "31d is not at most 30d"),
    ("rate", "fast", "fast is not a rate such as 5000/s, 300/m or 1.5k/s"),
    ("rate", "0/s", "0/s is not more than 0/s"),
    ("rate", ["5/s"], "['5/s'] is not a rate such as 5000/s, 300/m or 1.5k/s"),
    ("stages", "5000/s", "5000/s is not a stage such as 10m:5000/s, 1m:0..5000/s or 1m:0..200"),
    ("stages", [], "no stage is given"),
    ("arrivals", "random", "random is not one of even, poisson"),
    ("late", "never", "never is neither a duration between 1ms and 1h nor send"),
    ("late", "2h", "2h is neither a duration between 1ms and 1h nor send"),
    ("max-rate", "-1/s", "-1/s is not at least 0/s"),
    ("warm-up", "0s", "0s is not at least 1ms"),
    ("keepalive", "no", "no is not true or false"),
    ("http2", "yes", "yes is not true or false"),
    ("streams", 0, "0 is not at least 1"),
    ("streams", 10_001, "10001 is not at most 10_000"),
    ("connections", "none", "none is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("connections", "1M", "1M is not at most 100_000"),
    ("data", "a.csv", f"a.csv is not what a scan says of a file: {SCANNED}; oku run scans it"),
    ("concurrency", 0, "0 is not at least 1"),
    ("concurrency", "20M", "20M is not at most 10_000_000"),
    ("workers", 0, "0 is not at least 1"),
    ("workers", 10_001, "10001 is not at most 10_000"),
    ("engine", "steam", "steam is not one of auto, aiohttp, httptools, nghttp2, python, locust"),
    ("engine", None, "null is not one of auto, aiohttp, httptools, nghttp2, python, locust"),
    ("engine", ["aiohttp"], "['aiohttp'] is not one of auto, aiohttp, httptools, nghttp2, python, locust"),
    ("timeout", 0, "0 is not at least 1ms"),
    ("timeout", "-10s", "-10s is not at least 1ms"),
    ("timeout", "999us", "999us is not at least 1ms"),
    ("timeout", "2h", "2h is not at most 1h"),
    ("timeout", "1e400", "1e400 is not a duration such as 10s, 500ms or 2m"),
    ("timeout", False, "false is not a duration such as 10s, 500ms or 2m"),
    ("grace", -0.1, "-0.1 is not at least 0s"),
    ("grace", "3600.5s", "3600.5s is not at most 1h"),
    ("stop-when-down", "2h", "2h is neither a duration between 1s and 1h nor never"),
    ("thresholds", [], "no threshold is given"),
    ("thresholds", "p99 < x", "p99 < x: character 7: x is not a duration with its unit, such as 300ms or 2s"),
    ("start-within", -1, "-1 is not at least 0s"),
    ("give-up-after", 0, "0 is not at least 1s"),
    ("give-up-after", "999ms", "999ms is not at least 1s"),
    ("give-up-after", "31d", "31d is not at most 30d"),
    ("give-up-after", "soon", "soon is not a duration such as 10s, 500ms or 2m"),
    ("expect-status", 600, "600 is not a status such as 200 or 2xx"),
    ("expect-status", "6xx", "6xx is not a status such as 200 or 2xx"),
    ("expect-status", [], "no status is given"),
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
    ("cacert", "", "'' is not the path of a file"),
    ("cacert", ["a", "b"], "['a', 'b'] is not text"),
    ("cert", "a\nb", r"'a\nb' is not the path of a file"),
    ("cert", None, "null is not text"),
    ("key", True, "true is not text, put it in quotes"),
    ("insecure", "yes", "yes is not true or false"),
    ("insecure", 1, "1 is not true or false"),
    ("proxy", "proxy:3128", "proxy:3128 has no scheme, write http://proxy:3128"),
    ("proxy", "https://proxy/", "https://proxy/ is not a proxy such as http://proxy.example:3128"),
    ("proxy", "http://proxy/path", "http://proxy/path is not a proxy such as http://proxy.example:3128"),
    ("max-redirects", -1, "-1 is not at least 0"),
    ("max-redirects", 101, "101 is not at most 100"),
    ("max-redirects", True, "true is not a number such as 50000, 1_000_000, 1e6 or 1M"),
    ("cookies", "no", "no is not true or false"),
    ("cookies", None, "null is not true or false"),
]


def read_fault(*sources: Source) -> str:
    """Return the error for wrong sources."""
    with pytest.raises(SpecError) as caught:
        parse_spec(*sources)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("requests", "1000 with a URL, 100000 without; the rows of --data; none with --duration or --stage"),
        (
            "concurrency",
            "100; with a rate, what it sends in 2s; with connections, their streams",
        ),
        ("arrivals", "even"),
        ("late", "1s"),
        ("keepalive", ""),
        ("method", "GET, or POST with a body"),
        ("timeout", "10s"),
        ("expect-status", "2xx"),
        ("engine", "auto"),
        ("max-redirects", "0"),
        ("http2", ""),
        ("streams", "10"),
        ("connections", "as many as the concurrency needs"),
        ("insecure", ""),
        ("header", ""),
        ("name", ""),
    ],
)
def test_a_default_reads_as_one_would_write_it(key: str, default: str) -> None:
    """It says what a key that is left out means, and nothing if that is nothing."""
    assert describe_default(FIELD_BY_KEY[key]) == default


def test_every_field_is_complete_and_consistent() -> None:
    """Each key occurs once and has a help text; the value of a repeatable key is a tuple."""
    assert len(set(KEYS)) == len(KEYS)
    for field in FIELDS:
        assert field.help.endswith(".")
        assert bool(field.metavar) is not (field.is_switch or field.file_only)
        assert field.is_switch == isinstance(getattr(Spec(), field.attribute), bool)
        assert field.repeatable == isinstance(getattr(Spec(), field.attribute), tuple)
    assert INDEX_PLACEHOLDER in FIELD_BY_KEY["url"].help
    # Keys of a group stand together. Help and documents list group by group.
    headings = [field.group for field in FIELDS]
    assert list(dict.fromkeys(headings)) == list(FieldGroup)
    assert sorted(headings, key=list(FieldGroup).index) == headings
    # Flags of one letter are those that other tools have taught.
    short = {flag: field.key for field in FIELDS for flag in field.short}
    assert short == {
        "-n": "requests", "-c": "concurrency", "-H": "header", "-d": "body", "-m": "method", "-X": "method",
        "-t": "timeout", "-w": "workers", "-k": "insecure", "-x": "proxy",
        "-q": "rate", "-z": "duration",
    }  # fmt: skip
    assert sum(len(field.short) for field in FIELDS) == len(short)
    # Every attribute of a spec has a key. Each key also has exactly one attribute.
    own = [field.attribute for field in FIELDS if not field.alias_of]
    assert sorted(own) == sorted(Spec.__struct_fields__)
    for field in FIELDS:
        if field.alias_of:
            assert FIELD_BY_KEY[field.alias_of].attribute == field.attribute


@pytest.mark.parametrize(("key", "value", "fault"), WRONG_VALUES)
def test_a_wrong_value_is_told_with_place_and_what_is_allowed(key: str, value: object, fault: str) -> None:
    """The error is one line that differs between sources only in the place."""
    assert read_fault(Source("spec.yaml", {key: value})) == f"spec.yaml: {key}: {fault}"
    assert read_fault(Source(None, {key: value})) == f"--{FIELD_BY_KEY[key].long_flag}: {fault}"


def test_every_key_has_a_wrong_value() -> None:
    """The error of every field has a test."""
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
        ("stop-when-down", "never", 0.0),
        ("seed", 0, 0),
        ("seed", "9223372036854775807", 2**63 - 1),
        ("seed", 2**63 - 1, 2**63 - 1),
        ("delay", "0..0s", "0..0s"),
        ("name", "x" * 100, "x" * 100),
        ("name", "", ""),
        ("body", "", ""),
        ("max-redirects", 0, 0),
        ("max-redirects", "100", 100),
        ("insecure", False, False),
        ("cookies", True, True),
        ("proxy", "http://me:secret@h:1/", "http://me:secret@h:1/"),
        ("cacert", " a b.pem", " a b.pem"),
    ],
)
def test_a_limit_is_itself_allowed(key: str, value: object, read: object) -> None:
    """The bounds of a value are inclusive."""
    spec = parse_spec(Source(None, {key: value}))
    assert getattr(spec, FIELD_BY_KEY[key].attribute) == read


def test_a_long_value_is_cut() -> None:
    """A name with a thousand letters does not fill the terminal."""
    fault = read_fault(Source(None, {"name": "x" * 1000}))
    assert fault.endswith(" is not a name of up to 100 printable characters")
    assert len(fault) < 200
    assert read_fault(Source(None, {"name": "x" * 101})).startswith("--name: 'xxx")


@settings(max_examples=6 * settings().max_examples)
@given(field=st.sampled_from(FIELDS), value=st.text() | st.text(alphabet="http:/[]{}i@?#. x2,AGET0\n٣"))
def test_any_text_is_read_or_refused_in_one_line(field: Field, value: str) -> None:
    """A parser raises only `ValueError`, and a value that it accepts is read back as the same value."""
    message = "no error"
    try:
        read = field.parse(value)
    except ValueError as error:
        message = str(error)
    else:
        assert field.parse(read) == read
    assert message.isprintable(), field.key

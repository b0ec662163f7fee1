import json
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import given
from tests.kit.runs.specs import specs

from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.spec import Spec, decode_spec, encode_spec
from oku_core.spec.spec_digest import digest_spec, list_differing_keys

A, B = "a" * 64, "b" * 64
DATA = {
    "name": "rows.csv", "format": "csv", "digest": A, "size": 10, "rows": 5, "columns": ["x"], "index": B,
    "repeat": False,
}  # fmt: skip
URL = "http://h:1/{i}"
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"url": URL, "requests": 1000}, {"requests": "1k", "url": [URL]}),
    ({"url": URL}, {"url": URL, "requests": 1000, "concurrency": 100, "method": "GET", "timeout": "10s"}),
    ({"rate": "60/m", "duration": "1m"}, {"duration": "60s", "rate": "1/s"}),
    ({"rate": "1/s", "duration": "9s", "late": "500ms"}, {"rate": "1/s", "duration": "9s", "late": "0.5s"}),
    ({"timeout": "1s"}, {"timeout": "1000ms"}),
    ({"url": URL, "header": ["A: b"]}, {"url": URL, "header": {"A": "b"}}),
    ({"stages": ["1m:0..120/m"]}, {"stages": [{"for": "60s", "rate": "0..2/s"}]}),
    ({"thresholds": ["p99<300ms"]}, {"thresholds": "p99 < 0.3s"}),
    ({"thresholds": ["timeout + lost < 1"]}, {"thresholds": ["lost + timeout < 1"]}),
    ({"thresholds": ["ok >= 99%"]}, {"thresholds": ["ok >= 99.0%"]}),
    ({"url": URL, "expect-size": [">1kB"]}, {"url": URL, "expect-size": ["> 1000"]}),
    ({"url": URL, "expect-json": ['/a={"b": 1}']}, {"url": URL, "expect-json": ['/a={"b":1}']}),
    ({"url": URL, "body": f"@sha256:{A}:5:one"}, {"url": URL, "body": f"@sha256:{A}:5:another"}),
    ({"url": URL, "data": DATA}, {"url": URL, "data": {**DATA, "name": "copy.csv"}}),
    (
        {"engine": "python", "scenario": f"s.py@sha256:{A}:5:s.py"},
        {"engine": "python", "scenario": f"s.py@sha256:{A}:5:copy.py"},
    ),
]
OTHER: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"url": URL}, {"url": "http://h:1/x{i}"}, ["url"]),
    ({"url": URL}, {"url": URL, "requests": 1001}, ["requests"]),
    ({"url": URL}, {"url": URL, "workers": 2, "name": "x"}, ["workers", "name"]),
    ({"url": URL, "header": ["A: b"]}, {"url": URL, "header": ["A: B"]}, ["header"]),
    ({"delay": "5ms..15ms"}, {"delay": "10ms"}, ["delay"]),
    ({"thresholds": ["p99 < 1s"]}, {"thresholds": ["p99 <= 1s"]}, ["thresholds"]),
    ({"url": URL, "expect-size": ["> 1kB"]}, {"url": URL, "expect-size": [">= 1kB"]}, ["expect-size"]),
    ({"url": URL, "body": f"@sha256:{A}:5:x"}, {"url": URL, "body": f"@sha256:{B}:5:x"}, ["body"]),
    ({"url": URL, "cacert": f"@sha256:{A}:5:x"}, {"url": URL, "cacert": f"@sha256:{B}:5:x"}, ["cacert"]),
    ({"url": URL, "data": DATA}, {"url": URL, "data": {**DATA, "digest": B}}, ["data"]),
    (
        {"engine": "python", "scenario": f"s.py@sha256:{A}:5:s.py"},
        {"engine": "python", "scenario": f"s.py@sha256:{B}:5:s.py"},
        ["scenario"],
    ),
    (
        {"targets": [{"name": "a", "url": URL}]},
        {"targets": [{"name": "a", "url": URL, "body": "x"}]},
        ["targets"],
    ),
]


def read(values: Mapping[str, Any]) -> Spec:
    """The spec of a user."""
    return parse_spec(Source(None, values))


def test_specs_that_mean_the_same_have_one_digest() -> None:
    """However units, lists, files and defaults are written, and in whatever order."""
    for one, other in SAME:
        assert digest_spec(read(one)) == digest_spec(read(other)), (one, other)
        assert list_differing_keys(read(one), read(other)) == []
    # Specs that ask for something else have other digests. The keys that differ can be named.
    for one, other, keys in OTHER:
        assert digest_spec(read(one)) != digest_spec(read(other)), (one, other)
        assert list_differing_keys(read(one), read(other)) == keys


def test_every_attribute_of_a_spec_counts() -> None:
    """One that is added later, too."""
    digests = {digest_spec(Spec())}
    for field in msgspec.structs.fields(Spec):
        changed: Any = {field.name: "something else"}
        digests.add(digest_spec(msgspec.structs.replace(Spec(), **changed)))
    assert len(digests) == 1 + len(msgspec.structs.fields(Spec))
    # A digest stays the same from one oku to the next.
    spec = read(
        {
            "url": URL, "header": {"A": "b"}, "rate": "5/s", "duration": "1m", "thresholds": ["p99 < 1s"],
            "expect-status": "404", "body": f"@sha256:{A}:5:x",
        }
    )  # fmt: skip
    assert digest_spec(Spec()) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest_spec(spec) == "e40b7cfd1dcf6f2ac9afc99cd9d41b3cd6e38622a63676ffe95183e835556c5b"


@given(specs())
def test_a_spec_keeps_its_digest_on_its_way_to_the_ledger(spec: Spec) -> None:
    """The command sends it as JSON, the coordinator parses that, and the ledger keeps what it understood."""
    sent = json.loads(msgspec.json.encode(build_mapping(spec)))
    received = parse_spec(Source("spec", sent))
    assert digest_spec(received) == digest_spec(spec) == digest_spec(decode_spec(encode_spec(received)))

from typing import Any

import pytest

from oku_core.errors import UserError
from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.spec import (
    OPEN_END,
    Spec,
    decode_spec,
    encode_spec,
)

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
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 50),
        ({"requests": 7}, 7),
        ({"rate": "10/s"}, 50),
        ({"duration": "10s"}, 50),
        ({"duration": "10s", "data": DATA | {"repeat": True}}, OPEN_END),
        ({"duration": "10s", "requests": 7}, 7),
        ({"rate": "100/s", "duration": "10s", "data": DATA | {"repeat": True}}, 1000),
        ({"requests": 500, "data": DATA | {"repeat": True}}, 500),
    ]
    for values, requests in cases:
        # There are as many requests as rows unless the spec says otherwise.
        assert parse(url="http://h/{sku}", **values).requests == requests
    # More requests than rows are refused. The message says how to allow it.
    too_many: list[dict[str, Any]] = [
        {"requests": 51},
        {"requests": 51, "duration": "1h"},
        {"rate": "51/s", "duration": "1s"},
    ]
    for values in too_many:
        assert read_fault(url="http://h/{sku}", **values) == (
            "spec.yaml: data: skus.csv has 50 rows, fewer than the 51 requests of this run; "
            "skus.csv:repeat starts over after the last row"
        )
    # One row is a row. Not rows.
    assert "skus.csv has 1 row, fewer" in read_fault(
        url="http://h/{sku}", requests=2, data=DATA | {"rows": 1}
    )


VARIES = "the length of a body with columns in it varies; leave the header out, Oku sends it"
COLUMNS = "is not a column of skus.csv (sku, price)"


def test_without_data_braces_of_headers_and_bodies_are_text() -> None:
    """Only URLs can't have them."""
    spec = parse_spec(Source(None, {"url": "http://h/", "body": "{sku}", "header": "X: {price}"}))
    assert (spec.body, spec.headers[0].value) == ("{sku}", "{price}")
    with pytest.raises(SpecError, match=r"^--url: http://h/\{sku\} has the unknown placeholder \{sku\}; Oku"):
        parse_spec(Source(None, {"url": "http://h/{sku}"}))


def test_a_placeholder_that_is_no_column_is_refused() -> None:
    """The message names the place and lists the columns."""
    cases: list[tuple[dict[str, Any], str]] = [
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
    ]
    for values, fault in cases:
        assert read_fault(**values) == f"spec.yaml: {fault}"
    other_cases: list[tuple[object, str]] = [
        ("skus.csv", "skus.csv is not what a scan says of a file: name, format, digest, size, rows, columns"),
        ({**DATA, "digest": "x"}, "skus.csv: digest: x is not a SHA-256 digest"),
        ({**DATA, "rows": 0}, "skus.csv: rows: 0 is not between 1 and 1_000_000_000_000_000"),
        ({**DATA, "columns": ["a", "a"]}, "skus.csv: columns 1 and 2 are both called a"),
        ({**DATA, "format": "xls"}, "skus.csv: Invalid enum value 'xls' - at `$.format`"),
        ({**DATA, "more": 1}, "skus.csv: Object contains unknown field `more`"),
    ]
    for data, fault in other_cases:
        # Data that no scan has described is refused.
        assert read_fault(url="http://h/", data=data).startswith(f"spec.yaml: data: {fault}")


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


def test_what_they_cannot_is_refused() -> None:
    """In one line, with what to write instead."""
    cases: list[tuple[str, object, str]] = [
        (
            "header",
            "User: {i}",
            "s.yaml: header: User: {i} differs between requests; let the locustfile send it",
        ),
    ]
    for key, value, message in cases:
        with pytest.raises(UserError) as caught:
            parse_code(**{key: value})
        assert str(caught.value) == message
    other_cases: list[tuple[list[str], str]] = [
        (["locustfile.py"], "locustfile.py is the path of the scenario"),
        (["lib", "lib/a.py"], "lib/a.py cannot stand below lib, which is a file"),
        (["locustfile.py/a"], "locustfile.py/a cannot stand below locustfile.py, which is a file"),
    ]
    for included, message in other_cases:
        # No file takes the place of another one. They stand in one folder when the code runs.
        with pytest.raises(UserError) as caught:
            parse_code(include=[f"{path}@sha256:{'b' * 64}:3:a" for path in included])
        assert str(caught.value) == f"s.yaml: include: {message}"


def test_clients_get_what_they_can_take() -> None:
    """Headers that are the same for all, TLS, a proxy and a limit of time."""
    spec = parse_code(
        header=["Team: a", "Filter: {x}"], insecure=True, proxy="http://proxy:3128", timeout="2s"
    )
    assert (len(spec.headers), spec.insecure, spec.timeout_s) == (2, True, 2.0)
    assert parse_code(keepalive=True).keepalive
    # Files may stand in folders. Names that begin alike are different ones.
    paths = ["lib/a.py", "lib/a", "lib.py", "libs"]
    assert len(parse_code(include=[f"{path}@sha256:{'b' * 64}:3:a" for path in paths]).include) == 4

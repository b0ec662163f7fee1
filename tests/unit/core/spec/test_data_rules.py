from typing import Any

import pytest

from oku_core.spec.parser import Source, SpecError, build_mapping, parse_spec
from oku_core.spec.spec import OPEN_END, Spec, decode_spec, encode_spec

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

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.check import (
    ExpectedStatus,
    JsonValue,
    SizeBound,
    list_codes,
    parse_contained,
    parse_expect_status,
    parse_expected_headers,
    parse_json_values,
    parse_sizes,
)
from oku_core.spec.values.scalar import PlainScalar


def read_fault(value: object) -> str:
    """Return the error for a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse_expect_status(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "statuses"),
    [
        ("200", ("200",)),
        (200, ("200",)),
        ("2xx", ("2xx",)),
        ("2XX", ("2xx",)),
        ("200, 404", ("200", "404")),
        (["200,404", 5, "5xx"], None),
        (["200,404", 503, "5xx"], ("200", "404", "503", "5xx")),
        ("100", ("100",)),
        ("599", ("599",)),
    ],
)
def test_statuses_come_in_lists_with_commas_or_as_classes(
    value: object, statuses: tuple[str, ...] | None
) -> None:
    """The command line and files accept all of these forms."""
    if statuses is None:
        assert read_fault(value) == "5 is not a status such as 200 or 2xx"
    else:
        assert parse_expect_status(value) == statuses


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("600", "600 is not a status such as 200 or 2xx"),
        ("6xx", "6xx is not a status such as 200 or 2xx"),
        ("0xx", "0xx is not a status such as 200 or 2xx"),
        ("20", "20 is not a status such as 200 or 2xx"),
        ("2000", "2000 is not a status such as 200 or 2xx"),
        ("20x", "20x is not a status such as 200 or 2xx"),
        ("2٣٣", "2٣٣ is not a status such as 200 or 2xx"),
        ("200,", "'' is not a status such as 200 or 2xx"),
        ("", "'' is not a status such as 200 or 2xx"),
        ("ok", "ok is not a status such as 200 or 2xx"),
        (200.0, "200.0 is not a status such as 200 or 2xx"),
        (-200, "-200 is not a status such as 200 or 2xx"),
        (True, "true is not text, put it in quotes"),
        (None, "null is not text"),
        ([], "no status is given"),
        ([[200]], "[200] is not text"),
        ({200: "ok"}, "{200: 'ok'} is not text"),
    ],
)
def test_an_invalid_status_is_named(value: object, fault: str) -> None:
    """A run that expects nothing, or something that no server can send, does not start."""
    assert read_fault(value) == fault


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def test_a_status_knows_its_codes() -> None:
    """It has one code or a hundred, and several statuses form a set."""
    assert list(ExpectedStatus("404").codes) == [404]
    assert list_codes(parse_expect_status("2xx,404,204")) == {*range(200, 300), 404}
    # Texts are one or a list. A number counts as text, as it does as a flag.
    assert parse_contained("ok") == ("ok",)
    assert parse_contained(["ok", 5, PlainScalar("010")]) == ("ok", "5", "010")
    assert {type(text) for text in parse_contained(PlainScalar("a"))} == {str}


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("/id=17", '{"id": 17}'), ("/id=17", '{"id": 17.0}'), ("/id=1.7e1", '{"id": 17}'),
        ('/id="17"', '{"id": "17"}'), ("/name=Anna", '{"name": "Anna"}'), ("/name=", '{"name": ""}'),
        ("/a=b=c", '{"a": "b=c"}'), ("/a/0/b=true", '{"a": [{"b": true}]}'), ("/0=null", '{"0": null}'),
        ("=[1, 2]", "[1,2]"), ("/a~1b/m~0n=1", '{"a/b": {"m~n": 1}}'), ("/~01=1", '{"~1": 1}'),
        ("/=1", '{"": 1}'),
        ('/a={"b": [1], "c": null}', '{"a": {"c": null, "b": [1.0]}}'),
    ],
)  # fmt: skip
def test_a_value_stands_at_its_pointer(text: str, document: str) -> None:
    """Pointers are those of RFC 6901; the order of keys does not matter."""
    assert JsonValue(text).is_in(json.loads(document))


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("/id=17", '{"id": "17"}'),
        ("/id=17", '{"id": 18}'),
        ("/id=1", '{"id": true}'),
        ("/id=true", '{"id": 1}'),
        ("/id=[1]", '{"id": [true]}'),
        ('/id={"a": 0}', '{"id": {"a": false}}'),
        ("/id=null", "{}"), ("/id=null", "[]"), ("/id=null", "null"), ("/a/b=1", '{"a": 1}'),
        ("/01=1", "[0, 1]"), ("/-=1", "[1]"), ("/\u0660=1", "[1]"), ("/1=1", "[1]"),
        ('/a={"b": 1}', '{"a": {"b": 1, "c": 2}}'),
        ("/a=[1]", '{"a": [1, 2]}'),
        (f"/{'9' * 99}=1", "[1]"),
    ],
)  # fmt: skip
def test_another_value_or_none_at_a_pointer_does_not_count(text: str, document: str) -> None:
    """True and 1 are different, and so are null and nothing."""
    assert not JsonValue(text).is_in(json.loads(document))


@given(DOCUMENTS)
def test_a_document_has_itself_as_its_value(document: object) -> None:
    """Written as a mapping of pointers, the value is the one that was written."""
    (value,) = parse_json_values({"": document})
    assert value.is_in(document)
    assert JsonValue(str(value)).value == document
    assert parse_json_values([value]) == (value,)


def test_in_a_mapping_a_number_without_quotes_is_a_number() -> None:
    """As in a JSON body."""
    values = parse_json_values({"/a": PlainScalar("17"), "/b": "17", "/c": PlainScalar("x"), "/d": None})
    assert values == ("/a=17", '/b="17"', '/c="x"', "/d=null")
    with pytest.raises(ValueError, match=r"^/a=b has a = in it, which is not supported$"):
        parse_json_values({"/a=b": 1})
    # What has no pointer is refused. The line shows what one looks like.
    for text in ["", "id", "id=17", "/id", "/a~=1", "/a~2=1", "$.id=1"]:
        fault = "is not a JSON pointer and its value, such as /user/id=17"
        with pytest.raises(ValueError, match=re.escape(fault)):
            parse_json_values(text)
    for pointer in [f"/{'x' * 100}", "/a\nb", "/\u202e"]:
        # A pointer fits a line. The reason of what fails a check names it.
        with pytest.raises(ValueError, match=r" is not a pointer of up to 100 printable characters$"):
            JsonValue(f"{pointer}=1")
        with pytest.raises(ValueError, match=r" is longer than 100 characters$"):
            parse_expected_headers(f"{'x' * 101}:")
    # A value that is nested too deep is refused. Nobody's process ends with it.
    with pytest.raises(ValueError, match=r"is nested too deep$"):
        JsonValue(f"/a={'[' * 10_000}")


def test_a_size_is_exact_or_a_bound() -> None:
    """Sizes are written as everywhere."""
    cases: list[tuple[str, list[int], list[int]]] = [
        ("0", [0], [1]),
        ("= 5", [5], [4, 6]),
        ("<2kB", [0, 1999], [2000]),
        ("<= 1KiB", [1024], [1025]),
        ("> 0", [1, 10**9], [0]),
        (" >=10 ", [10], [9]),
    ]
    for text, allowed, refused in cases:
        bound = SizeBound(text)
        assert all(map(bound.holds, allowed))
        assert not any(map(bound.holds, refused))
        assert bound == text
    # What is not a size is refused. The line shows the forms.
    wrong: list[object] = ["", ">", ">=", "=> 5", "-1", "<= -1", "big", "1 kB 2", "1\n2", "≤ 5", True]
    for size in wrong:
        with pytest.raises(ValueError, match=r"is not a size such as 1kB, > 0 or <= 10kB$|is not text"):
            parse_sizes(size)
    # A bound that nothing keeps is refused. Every request would fail.
    with pytest.raises(ValueError, match=r"^< 0 allows no size at all$"):
        parse_sizes("< 0")
    assert parse_sizes([0, "> 0"]) == ("0", "> 0")


def test_an_expected_header_may_have_any_value() -> None:
    """A mapping of names to values and a list of texts say the same."""
    (any_value, hit) = parse_expected_headers(["ETag:", "X-Cache: HIT"])
    assert (any_value.name, any_value.value) == ("ETag", "")
    assert (hit.name, hit.value) == ("X-Cache", "HIT")
    assert parse_expected_headers({"X-Cache": "HIT"}) == (hit,)

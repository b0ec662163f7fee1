import re

import pytest
from hypothesis import given
from tests.kit.runs.targets import expectations

from oku_core.spec.expectation import (
    Expectation,
    build_expectation_mapping,
    find_body_check,
    parse_expectation,
)
from oku_core.spec.values.expected_status import ExpectedStatus


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("200", "200 is not a mapping of status, body, match, json, header, size, within"),
        (["200"], "['200'] is not a mapping of status, "),
        ({"bdoy": "x"}, "bdoy: unknown key, known keys are status, body, match, json, header, size, within"),
        ({None: "x"}, "null: unknown key, known keys are status, "),
        ({"status": []}, "status: no status is given"),
        ({"status": "6xx"}, "status: 6xx is not a status such as 200 or 2xx"),
        ({"body": ""}, "body: '' is in every body"),
        ({"body": []}, "body: no text is given"),
        ({"body": True}, "body: true is not text, put it in quotes"),
        ({"match": True}, "match: true is not text, put it in quotes"),
        ({"match": []}, "match: no regular expression is given"),
        ({"json": "id=1"}, "json: id=1 is not a JSON pointer and its value, such as /user/id=17"),
        ({"json": {}}, "json: no JSON value is given"),
        ({"json": {"/a": float("nan")}}, "json: /a: nan cannot be written as JSON"),
        ({"header": "X-Cache"}, "header: X-Cache is not of the form 'Name: value'"),
        ({"header": {}}, "header: no header is given"),
        ({"size": "big"}, "size: big is not a size such as 1kB, > 0 or <= 10kB"),
        ({"within": "0s"}, "within: 0s is not between 1ms and 1h"),
        ({"within": "soon"}, "within: soon is not a duration such as 10s, 500ms or 2m"),
    ],
)
def test_a_wrong_expectation_is_told_by_its_key(value: object, fault: str) -> None:
    """An empty list would read as if something were checked."""
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}"):
        parse_expectation(value)


@given(expectations())
def test_an_expectation_survives_being_written(expectation: Expectation) -> None:
    """The mapping has only what is checked, as the user wrote it."""
    mapping = build_expectation_mapping(expectation)
    assert parse_expectation(mapping) == expectation
    assert bool(mapping) == (expectation != Expectation())


@given(expectations(), expectations())
def test_what_is_left_out_is_as_for_all_targets(own: Expectation, shared: Expectation) -> None:
    """What is given takes the place of it, key by key."""
    both = own.complete(shared)
    for name in Expectation.__struct_fields__:
        left_out = getattr(own, name) in ((), None)
        assert getattr(both, name) == getattr(shared if left_out else own, name)
    assert own.complete(Expectation()) == own == own.complete(own)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({}, None),
        ({"status": 200, "header": "A: b", "size": 0, "within": 1}, None),
        ({"match": "x", "json": "/a=1"}, "match"),
        ({"json": "/a=1"}, "json"),
    ],
)
def test_it_is_known_what_asks_for_a_body(value: object, key: str | None) -> None:
    """Status, header, size and time do not."""
    assert find_body_check(parse_expectation(value)) == key


def test_by_default_nothing_is_checked() -> None:
    """The status of a spec has a default of its own."""
    assert parse_expectation({}) == Expectation()
    assert parse_expectation({"status": 201}).status == (ExpectedStatus("201"),)

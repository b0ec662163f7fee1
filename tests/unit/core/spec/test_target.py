import re
from typing import Any

import pytest
from hypothesis import given
from tests.kit.runs.targets import JSON_BODIES, expectations

from oku_core.spec.target import (
    MOST_TARGETS,
    Expectation,
    Target,
    add_content_type,
    build_expectation_mapping,
    build_target_mapping,
    find_body_check,
    parse_expectation,
    parse_targets,
)
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.scalar import PlainScalar


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


def test_it_is_known_what_asks_for_a_body() -> None:
    """Status, header, size and time do not."""
    cases: list[tuple[object, str | None]] = [
        ({}, None),
        ({"status": 200, "header": "A: b", "size": 0, "within": 1}, None),
        ({"match": "x", "json": "/a=1"}, "match"),
        ({"json": "/a=1"}, "json"),
    ]
    for value, key in cases:
        assert find_body_check(parse_expectation(value)) == key
    # By default nothing is checked. The status of a spec has a default of its own.
    assert parse_expectation({}) == Expectation()
    assert parse_expectation({"status": 201}).status == (ExpectedStatus("201"),)


HOME: dict[str, Any] = {"name": "home", "url": "/"}


def parse(**keys: object) -> Target:
    """The only target of a list."""
    (target,) = parse_targets([HOME | keys])
    return target


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("/", "/ is not a list of mappings such as {name: home, url: /}"),
        (HOME, "{'name': 'home', 'url': '/'} is not a list of mappings such as {name: home, url: /}"),
        ([], "[] is not a list of mappings such as {name: home, url: /}"),
        (None, "null is not a list of mappings such as {name: home, url: /}"),
        ([HOME] * (MOST_TARGETS + 1), "101 targets are given; at most 100 are allowed"),
        ([HOME, "/"], "number 2: / is not a mapping such as {name: home, url: /}"),
        ([HOME, HOME], "home: two targets have this name; give one of them another"),
        ([{"url": "/"}, {"url": "/"}], "GET /: two targets have this name; give one of them another"),
        ([{"name": "home"}], "home: url: is not given"),
        ([{}], "number 1: url: is not given"),
        ([{"wieght": 1}], "number 1: wieght: unknown key, did you mean weight?"),
        (
            [{"x": 1}],
            "number 1: x: unknown key, known keys are name, weight, method, url, header, body, json, expect",
        ),
        ([{5: 1, "url": "/"}], "number 1: 5: unknown key, known keys are "),
        ([HOME | {"name": ""}], "'': name: '' is empty, or begins or ends with a space"),
        ([HOME | {"name": " a"}], "' a': name: ' a' is empty, or begins or ends with a space"),
        ([HOME | {"name": "a\nb"}], r"'a\nb': name: 'a\nb' is not a name of up to 100 printable characters"),
        ([HOME | {"name": "x" * 101}], "'xxxx"),
        ([HOME | {"name": True}], "true: name: true is not text, put it in quotes"),
        ([HOME | {"weight": 0}], "home: weight: 0 is not between 1 and 1_000"),
        ([HOME | {"weight": "1001"}], "home: weight: 1001 is not between 1 and 1_000"),
        ([HOME | {"weight": 0.5}], "home: weight: 0.5 is not a whole number"),
        ([HOME | {"weight": True}], "home: weight: true is not a number such as "),
        ([HOME | {"method": "GET /"}], "home: method: GET / is not a method such as GET or POST"),
        ([HOME | {"url": "home"}], "home: url: home is neither a whole URL nor a path that begins with /"),
        ([HOME | {"url": "/{a/b}"}], "home: url: /{a/b} has the unknown placeholder {a/b}; Oku knows "),
        ([HOME | {"url": "/#a"}], "home: url: /#a has a fragment (#), which is never sent"),
        ([HOME | {"url": "/a b"}], "home: url: /a b contains whitespace or control characters"),
        ([HOME | {"url": "ftp://h/"}], "home: url: ftp://h/ has the scheme ftp; "),
        ([HOME | {"url": 5}], "home: url: 5 is not text, put it in quotes"),
        ([HOME | {"header": "X-Id"}], "home: header: X-Id is not of the form 'Name: value'"),
        ([HOME | {"body": {"a": 1}}], "home: body: {'a': 1} is not text"),
        ([HOME | {"body": "x", "json": 1}], "home: json: cannot be combined with body"),
        ([HOME | {"json": {1: 2}}], "home: json: 1 is not text, put it in quotes"),
        ([HOME | {"json": [float("inf")]}], "home: json: inf cannot be written as JSON"),
        ([HOME | {"json": {"a": "{env:a-b}"}}], "home: json: {env:a-b} is not of the form {env:NAME}"),
        ([HOME | {"expect": 201}], "home: expect: 201 is not a mapping of status, body, match, json, header"),
        ([HOME | {"expect": {"code": 1}}], "home: expect: code: unknown key, known keys are status, body, "),
        ([HOME | {"expect": {"status": 600}}], "home: expect: status: 600 is not a status such as 200"),
    ],
)
def test_a_wrong_target_is_told_by_its_name_or_number(value: object, fault: str) -> None:
    """Then comes the key, and what is wrong with its value, in one line."""
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}") as caught:
        parse_targets(value)
    assert str(caught.value).isprintable()


def test_weights_and_names_may_be_written_in_any_form() -> None:
    """It may be written as counts are anywhere else."""
    cases: list[object] = [1000, "1000", "1k", "1e3", "1_000", PlainScalar("1000")]
    for weight in cases:
        assert parse(weight=weight).weight == 1000
    for name in ["/items/{i}", "a b", "7 %", "日本", "=", "p99", "{}"]:
        # A name is any printable line. Whoever shows it quotes what must be quoted there.
        assert parse(name=name).name == name
        assert parse(name=7).name == "7"


@given(JSON_BODIES)
def test_a_json_body_comes_back_as_it_was(value: object) -> None:
    """What is written for a report is read as the same target again."""
    target = parse(json=value)
    assert target.is_json
    assert target.method == "POST"
    assert parse_targets([build_target_mapping(target)]) == (target,)


def test_a_target_needs_a_url_alone() -> None:
    """Its name is then the method and the URL, without what may be secret in it."""
    (target,) = parse_targets([{"url": "http://me:hunter2@h/{i}?token=hunter2"}])
    assert (target.name, target.weight, target.method, target.body) == (
        "GET http://***@h/{i}?***",
        1,
        "GET",
        None,
    )
    assert parse_targets([{"url": "/", "body": ""}])[0].name == "POST /"
    assert parse_targets([{"url": "/a?token=hunter2"}])[0].name == "GET /a?***"
    assert parse_targets([{"url": f"/{'x' * 200}"}])[0].name == f"GET /{'x' * 95}"
    # Numbers of a json body stand without quotes.
    body = parse(json={"a": PlainScalar("17"), "b": "17", "c": PlainScalar("010"), "d": True, "e": None}).body
    assert body == '{"a":17,"b":"17","c":"010","d":true,"e":null}'
    # Placeholders may stand in the text and the keys of a json body.
    assert parse(json={"{i}": ["{i}", "x{env:TOKEN}"]}).body == '{"{i}":["{i}","x{env:TOKEN}"]}'


@pytest.mark.parametrize(
    ("keys", "shared", "headers"),
    [
        ({}, (), ()),
        ({"json": "x"}, (), ("Content-Type: application/json",)),
        ({"body": "[1]"}, (), ("Content-Type: application/json",)),
        ({"body": "a=1&b={i}"}, (), ("Content-Type: application/x-www-form-urlencoded",)),
        ({"body": "hello"}, (), ()),
        ({"json": 1, "header": "content-type: a/b"}, (), ("content-type: a/b",)),
        ({"json": 1, "header": "A: b"}, ("Content-Type: a/b",), ("A: b",)),
    ],
)
def test_a_body_has_a_type_unless_a_header_says_another(
    keys: dict[str, object], shared: tuple[str, ...], headers: tuple[str, ...]
) -> None:
    """A header of all targets counts as well."""
    assert add_content_type(parse(**keys), tuple(map(Header, shared))).headers == headers

import pytest

from oku_core.spec.values.body import find_body_type, parse_body


@pytest.mark.parametrize("body", ["", "\r\n", "\ufeffa\n", '{"a": {"b": 1}}', "a\x00b"])
def test_a_body_is_sent_as_it_is_written(body: str) -> None:
    """Nothing is stripped, and braces need no escape."""
    assert parse_body(body) == body


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"a": {"b": 1}}',
        ' [1, "x"]\n',
        '{"id": {i}, "name": "item {i}"}',
        '{"key": "{env:KEY}", "n": {file:number}}',
    ],
)
def test_an_object_or_an_array_is_json(body: str) -> None:
    """Placeholders may stand where JSON wants a value."""
    assert find_body_type(body) == "application/json"


@pytest.mark.parametrize(
    "body", ["a=1", "a=1&b=2", "id={i}&key={env:KEY}", "mail=me@example.org&at[]=%2F+", "a="]
)
def test_pairs_of_names_and_values_are_a_form(body: str) -> None:
    """As browsers and curl send them."""
    assert find_body_type(body) == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "5",
        '"text"',
        "{name}",
        "{i}",
        "{file:body.json}",
        '{"a": 1}x',
        "a=1\nb=2",
        "a b=1",
        "a=1&",
        "=1",
        "TWFu==",
        "<a b=1>",
        "[" * 100_000,
    ],
    ids=lambda body: body[:20],
)
def test_any_other_text_has_no_type(body: str) -> None:
    """A number or a word alone is JSON as well, but hardly ever meant so; nor is all text with `=` a form."""
    assert find_body_type(body) is None

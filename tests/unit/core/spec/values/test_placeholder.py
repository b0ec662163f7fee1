from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.body import parse_body
from oku_core.spec.values.header import parse_headers
from oku_core.spec.values.placeholder import build_template, is_constant
from oku_core.spec.values.url import parse_proxy, parse_urls

INDICES = st.integers(min_value=0, max_value=10**15 - 1)
TEMPLATES = st.lists(st.sampled_from(["{i}", "{", "}", "i", "{{i}}", "a/", "{0}", "%d", "\\1"])).map("".join)


def read_fault(parse: Callable[[object], object], value: object) -> str:
    """Return the error for a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse(value)
    return str(caught.value)


@given(template=TEMPLATES, index=INDICES)
def test_a_template_puts_the_index_in_every_place(template: str, index: int) -> None:
    """Each `{i}` becomes the index in plain digits, and all other braces stay."""
    assert build_template(template)(index) == template.replace("{i}", str(index))


@given(template=TEMPLATES, index=INDICES)
def test_a_constant_text_is_the_same_for_every_index(template: str, index: int) -> None:
    """A text that is called constant does not change with the index, and every other text does."""
    text = build_template(template)
    assert is_constant(template) == (text(index) == text(index + 1))


@pytest.mark.parametrize(("template", "text"), [("", ""), ("{i}", "0"), ("/{i}/{i}", "/0/0")])
def test_the_first_index_is_zero(template: str, text: str) -> None:
    """The request space begins at 0."""
    assert build_template(template)(0) == text


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_urls, "http://{env:USER}:{file:pass.txt}@h:8080/{env:PATH_1}/{i}?token={file:a-b_c}"),
        (parse_proxy, "http://me:{env:PASSWORD}@proxy:3128"),
        (parse_headers, "Authorization: Bearer {env:TOKEN}"),
        (parse_body, '{"key": "{file:key}", "n": {i}}'),
    ],
)
def test_secrets_may_be_named(parse: Callable[[object], object], text: str) -> None:
    """They are allowed in everything that is sent, and the text stays as the user wrote it."""
    assert parse(text) in (text, (text,))


@pytest.mark.parametrize("name", ["", "A-B", "1A", "A:B", "A"])
@pytest.mark.parametrize(
    ("parse", "start"), [(parse_urls, "http://h/?a="), (parse_headers, "A: "), (parse_body, "")]
)
def test_a_malformed_placeholder_of_a_secret_is_refused(
    parse: Callable[[object], object], start: str, name: str
) -> None:
    """Otherwise it would be sent literally, and nobody would notice."""
    text = f"{{env:{name}" if name == "A" else f"{{env:{name}}}"
    assert "is not of the form {env:NAME} or {file:NAME}" in read_fault(parse, f"{start}{text}")


@pytest.mark.parametrize("name", ["../key", ".hidden", "a/b", "", "x" * 254])
def test_a_file_of_a_secret_is_in_its_folder(name: str) -> None:
    """A secret is named by a file name, not by a path."""
    assert "is not of the form" in read_fault(parse_body, f"{{file:{name}}}")


def test_other_braces_of_a_body_stay() -> None:
    """A body is often JSON."""
    for body in ('{"env": 1}', "{env}", "{x:y}", "{ env:A }"):
        assert parse_body(body) == body

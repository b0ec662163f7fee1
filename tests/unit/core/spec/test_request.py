import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request import build_headers, build_template, is_constant

INDICES = st.integers(min_value=0, max_value=10**15 - 1)
TEMPLATES = st.lists(st.sampled_from(["{i}", "{", "}", "i", "{{i}}", "a/", "{0}", "%d", "\\1"])).map("".join)


@given(template=TEMPLATES, index=INDICES)
def test_a_template_puts_the_index_in_every_place(template: str, index: int) -> None:
    """Each `{i}` becomes the index in plain digits; every other brace stays what it is."""
    assert build_template(template)(index) == template.replace("{i}", str(index))


@given(template=TEMPLATES, index=INDICES)
def test_a_constant_text_is_the_same_for_every_index(template: str, index: int) -> None:
    """What is called constant does not change, what is not does."""
    text = build_template(template)
    assert is_constant(template) == (text(index) == text(index + 1))


@pytest.mark.parametrize(("template", "text"), [("", ""), ("{i}", "0"), ("/{i}/{i}", "/0/0")])
def test_the_first_index_is_zero(template: str, text: str) -> None:
    """The request space begins at 0, and so do URLs."""
    assert build_template(template)(0) == text


def test_headers_keep_their_order_and_repeat() -> None:
    """Names and values are sent as the spec has them, white space around a value apart."""
    spec = parse_spec(Source(None, {"header": ["X-Id: n-{i}", "Accept:*/*", "X-Id:  b:c ", "Empty:"]}))
    assert build_headers(spec)(12) == [("X-Id", "n-12"), ("Accept", "*/*"), ("X-Id", "b:c"), ("Empty", "")]


def test_a_spec_without_headers_has_none() -> None:
    """No header is made up."""
    assert build_headers(parse_spec())(1) == []

import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.data.escape import AS_TEXT, IN_JSON, IN_URL
from oku_core.data.row_reader import Value
from oku_core.spec.values.body_bytes import FileText
from oku_core.spec.values.template import Template

INDICES = st.integers(min_value=0, max_value=10**15 - 1)
PIECES = [
    "{i}",
    "{",
    "}",
    "i",
    "{{i}}",
    "a/",
    "{0}",
    "%d",
    "%",
    "%s",
    "\\1",
    "{sku}",
    "{price}",
    "{ sku }",
    "é",
]
TEMPLATES = st.lists(st.sampled_from(PIECES)).map("".join)


class OneRow:
    """The same row for every index, in an order of its own."""

    values: Sequence[Value] = (Value("price", AS_TEXT), Value("sku", IN_URL), Value("sku", AS_TEXT))

    def read(self, index: int) -> tuple[bytes, ...]:
        """Give a value that depends on the index, and others that do not."""
        return b"%d.50" % index, b"a%2Fb", b"a/b"


@given(text=TEMPLATES, index=INDICES)
def test_a_template_puts_the_index_in_every_place(text: str, index: int) -> None:
    """Each `{i}` becomes the index in plain digits, and all other braces stay where there is no data."""
    template, expected = Template.parse(text), text.replace("{i}", str(index))
    assert template.bind()(index) == expected
    assert template.bind_bytes()(index) == expected.encode()


@given(text=TEMPLATES, index=INDICES)
def test_a_template_puts_values_of_the_row_in_their_places(text: str, index: int) -> None:
    """Each `{column}` becomes the value of the row, and what is no column stays."""
    template = Template.parse(text, ("sku", "price", "other"), AS_TEXT)
    expected = text.replace("{i}", str(index)).replace("{sku}", "a/b").replace("{price}", f"{index}.50")
    assert template.bind(OneRow())(index) == expected
    assert template.bind_bytes(OneRow())(index) == expected.encode()


@given(text=TEMPLATES, index=INDICES)
def test_the_values_of_a_template_fill_its_pattern(text: str, index: int) -> None:
    """Whoever puts several templates together formats all of them at once."""
    template = Template.parse(text, ("sku", "price"), AS_TEXT)
    filled = template.build_pattern() % template.bind_values(OneRow())(index)
    assert filled == template.bind_bytes(OneRow())(index)
    every = Template(value for value in OneRow.values)
    assert every.bind_values(OneRow())(index) == OneRow().read(index)


@given(text=TEMPLATES, index=INDICES)
def test_a_constant_template_is_the_same_for_every_index(text: str, index: int) -> None:
    """A template that is called constant does not change with the index, and every other one does."""
    template = Template.parse(text)
    build = template.bind()
    assert template.is_constant == (build(index) == build(index + 1))
    assert not template.is_constant or template.literal == text


@given(first=TEMPLATES, second=TEMPLATES, index=INDICES)
def test_templates_follow_one_another(first: str, second: str, index: int) -> None:
    """What is put together is what the texts are when they are."""
    together = Template.parse(first, ("sku",), IN_URL) + Template.parse(second, ("sku",), AS_TEXT) + "%x"
    parts = (Template.parse(first, ("sku",), IN_URL), Template.parse(second, ("sku",), AS_TEXT))
    assert together.bind(OneRow())(index) == "".join(part.bind(OneRow())(index) for part in parts) + "%x"


def test_a_template_says_what_it_needs_of_each_row() -> None:
    """The same column may stand in it more than once."""
    template = Template.parse("{a}{i}{b}{a}", ("a", "b"), IN_JSON)
    assert template.values == [Value("a", IN_JSON), Value("b", IN_JSON), Value("a", IN_JSON)]


@pytest.mark.parametrize(("text", "first"), [("", ""), ("{i}", "0"), ("/{i}/{i}", "/0/0")])
def test_the_first_index_is_zero(text: str, first: str) -> None:
    """The request space begins at 0."""
    assert Template.parse(text).bind()(0) == first


@pytest.mark.parametrize("columns", [(), ("j",)])
def test_braces_that_stand_for_nothing_take_no_memory(columns: tuple[str, ...]) -> None:
    """A file may be full of them: each would take a hundred bytes if it were taken out."""
    braces = "{a}" * 50_000
    text = FileText(braces + "{i}" + braces)
    tracemalloc.start()
    try:
        template = Template.parse(text, columns)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4 * len(text)
    assert template.fixed_bytes == 300_000
    assert template.bind()(7) == f"{braces}7{braces}"


@pytest.mark.parametrize("columns", [(), ("sku",)])
@pytest.mark.parametrize("kind", [str, FileText])
def test_a_literal_text_is_sent_as_it_is(columns: tuple[str, ...], kind: type[str]) -> None:
    """Its brace begins no placeholder, even with one inside."""
    text = kind("{literal:i}{literal:sku}{literal:env:A}{literal:literal:i}{literal:{i}}%d{literal:")
    template = Template.parse(text, columns)
    assert template.bind_bytes()(7) == b"{i}{sku}{env:A}{literal:i}{7}%d{"
    assert template.fixed_bytes == len(b"{i}{sku}{env:A}{literal:i}{}%d{")

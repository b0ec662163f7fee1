import tracemalloc
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.data.escape import AS_TEXT, IN_JSON, IN_URL
from oku_core.data.row_reader import Value
from oku_core.spec.values.request_content import (
    JSON_TYPE,
    find_body_type,
    find_framing_fault,
    parse_body,
    parse_headers,
)
from oku_core.spec.values.template import (
    SECRET_PLACEHOLDER,
    FileText,
    Template,
    escape_literally,
    has_placeholders,
    measure_body,
    read_body,
    read_literally,
    write_body,
)
from oku_core.spec.values.url import parse_proxy, parse_urls

CONTENTS = [b"", b"{i}", b"%d {i} %", bytes(range(256)), "{a} and 😀 {i}".encode(), b"\xff{i}\xfe{b}\xfd"]


@pytest.mark.parametrize("content", CONTENTS)
def test_what_stands_in_for_placeholders_is_put_into_the_bytes_of_a_file(content: bytes) -> None:
    """The rest of them stays, also where braces have something else in them."""
    template = Template.parse(read_body(content), ("b",))

    class Rows:
        values = (Value("b", AS_TEXT),)

        def read(self, _: int) -> tuple[bytes, ...]:
            return ("ü".encode(),)

    expected = content.replace(b"{i}", b"7").replace(b"{b}", "ü".encode())
    assert template.bind_bytes(Rows())(7) == expected
    fixed = content.replace(b"{i}", b"").replace(b"{b}", b"")
    assert template.fixed_bytes == len(fixed)


def test_any_file_is_sent_as_it_is() -> None:
    """Its text has one character for each byte, whatever its encoding."""
    for content in CONTENTS:
        text = read_body(content)
        assert len(text) == len(content) == measure_body(text)
        assert write_body(text) == content
    # A text is written in utf 8. Lone surrogates are bytes that are not UTF-8.
    assert write_body("ü\udcff") == "ü".encode() + b"\xff"
    assert measure_body("ü\udcff") == 3
    assert not isinstance("ü", FileText)


def read_fault(parse: Callable[[object], object], value: object) -> str:
    """Return the error for a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse(value)
    return str(caught.value)


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


def test_a_file_of_a_secret_is_in_its_folder() -> None:
    """A secret is named by a file name, not by a path."""
    for name in ["../key", ".hidden", "a/b", "", "x" * 254]:
        assert "is not of the form" in read_fault(parse_body, f"{{file:{name}}}")
    # Other braces of a body stay. A body is often JSON.
    for body in ('{"env": 1}', "{env}", "{x:y}", "{ env:A }"):
        assert parse_body(body) == body


@given(st.lists(st.sampled_from(["{", "}", "i", "i}", "env:", "file:a}", "literal:", "a"])).map("".join))
def test_text_of_others_stays_as_it_is_once_it_is_escaped(text: str) -> None:
    """None of it is a placeholder, and only what looks like one is escaped."""
    escaped = escape_literally(text)
    assert read_literally(escaped) == text
    assert Template.parse(escaped).bind()(7) == text
    assert SECRET_PLACEHOLDER.search(escaped) is None
    assert parse_body(escaped) == escaped
    assert (escaped != text) == has_placeholders(text)


def test_literal_text_is_sent_as_it_is_in_urls_and_bodies() -> None:
    """Its host and its user are never taken literally, and it may not hide a fragment."""
    [url] = parse_urls("http://h/{literal:i}?a={literal:env:A}&b={i}")
    assert (url.path, url.query) == ("/{literal:i}", "a={literal:env:A}&b={i}")
    for wrong in ("http://h{literal:i}/", "http://{literal:i}@h/"):
        assert "has {literal: before its path" in read_fault(parse_urls, wrong)
    assert "has a fragment (#)" in read_fault(parse_urls, "http://h/{literal:#}")
    assert "unknown placeholder" in read_fault(parse_urls, "http://h/{literal:a")
    # The length of a body is what is sent. A mark of literal text is not.
    assert find_framing_fault(parse_headers("Content-Length: 3"), "{literal:i}") is None
    assert find_framing_fault(parse_headers("Content-Length: 11"), "{literal:i}") is not None
    assert find_body_type('{"a": "{literal:i}"}') == JSON_TYPE


INDICES = st.integers(min_value=0, max_value=10**15 - 1)
PIECES = [
    "{i}", "{", "}", "i", "{{i}}", "a/", "{0}", "%d", "%", "%s", "\\1", "{sku}", "{price}", "{ sku }", "é",
]  # fmt: skip
TEMPLATES = st.lists(st.sampled_from(PIECES)).map("".join)


class OneRow:
    """The same row for every index, in an order of its own."""

    values: Sequence[Value] = (Value("price", AS_TEXT), Value("sku", IN_URL), Value("sku", AS_TEXT))

    def read(self, index: int) -> tuple[bytes, ...]:
        """Give a value that depends on the index, and others that do not."""
        return b"%d.50" % index, b"a%2Fb", b"a/b"


@given(text=TEMPLATES, index=INDICES)
def test_a_template_puts_index_and_values_in_their_places(text: str, index: int) -> None:
    """Each `{i}` becomes the index in plain digits, and all other braces stay where there is no data."""
    template, expected = Template.parse(text), text.replace("{i}", str(index))
    assert template.bind()(index) == expected
    assert template.bind_bytes()(index) == expected.encode()
    # A template puts values of the row in their places.
    template = Template.parse(text, ("sku", "price", "other"), AS_TEXT)
    expected = text.replace("{i}", str(index)).replace("{sku}", "a/b").replace("{price}", f"{index}.50")
    assert template.bind(OneRow())(index) == expected
    assert template.bind_bytes(OneRow())(index) == expected.encode()
    # The values of a template fill its pattern.
    template = Template.parse(text, ("sku", "price"), AS_TEXT)
    filled = template.build_pattern() % template.bind_values(OneRow())(index)
    assert filled == template.bind_bytes(OneRow())(index)
    every = Template(value for value in OneRow.values)
    assert every.bind_values(OneRow())(index) == OneRow().read(index)
    # A constant template is the same for every index.
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
    for text, first in [("", ""), ("{i}", "0"), ("/{i}/{i}", "/0/0")]:
        # The first index is zero. The request space begins at 0.
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

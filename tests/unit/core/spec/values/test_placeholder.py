from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.body import JSON_TYPE, find_body_type, parse_body
from oku_core.spec.values.header import find_framing_fault, parse_headers
from oku_core.spec.values.placeholder import (
    SECRET_PLACEHOLDER,
    escape_literally,
    has_placeholders,
    read_literally,
)
from oku_core.spec.values.template import Template
from oku_core.spec.values.url import parse_proxy, parse_urls


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


@pytest.mark.parametrize("name", ["../key", ".hidden", "a/b", "", "x" * 254])
def test_a_file_of_a_secret_is_in_its_folder(name: str) -> None:
    """A secret is named by a file name, not by a path."""
    assert "is not of the form" in read_fault(parse_body, f"{{file:{name}}}")


def test_other_braces_of_a_body_stay() -> None:
    """A body is often JSON."""
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


def test_a_url_may_have_literal_text_in_path_and_query() -> None:
    """Its host and its user are never taken literally, and it may not hide a fragment."""
    [url] = parse_urls("http://h/{literal:i}?a={literal:env:A}&b={i}")
    assert (url.path, url.query) == ("/{literal:i}", "a={literal:env:A}&b={i}")
    for wrong in ("http://h{literal:i}/", "http://{literal:i}@h/"):
        assert "has {literal: before its path" in read_fault(parse_urls, wrong)
    assert "has a fragment (#)" in read_fault(parse_urls, "http://h/{literal:#}")
    assert "unknown placeholder" in read_fault(parse_urls, "http://h/{literal:a")


def test_the_length_of_a_body_is_what_is_sent() -> None:
    """A mark of literal text is not."""
    assert find_framing_fault(parse_headers("Content-Length: 3"), "{literal:i}") is None
    assert find_framing_fault(parse_headers("Content-Length: 11"), "{literal:i}") is not None
    assert find_body_type('{"a": "{literal:i}"}') == JSON_TYPE

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from oku_core.http_client.client_rules import build_origin, build_target
from oku_core.spec.values.url import Url

TARGET_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]{}"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://host", "http://host"),
        ("http://HOST:8080/{i}", "http://host:8080"),
        ("HTTPS://host:8443/a?b", "https://host:8443"),
        ("http://[::1]:8080/{i}", "http://[::1]:8080"),
        ("http://straße.example?x", "http://xn--strae-oqa.example"),
        ("http://me:secret@host/{i}", "http://me:secret@host"),
    ],
)
def test_an_origin_says_where_to_connect(url: str, origin: str) -> None:
    """The host stands in the form in which it can be looked up."""
    assert build_origin(Url(url)) == URL(origin)
    assert build_origin(Url(url)).port == URL(origin).port


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://host:99999999/{i}", "http://host:port/", "ftp://h/", "/h", "http:///x"]
)
def test_nobody_can_be_asked(url: str) -> None:
    """What no check let through is an error, not a guess."""
    with pytest.raises(ValueError, match=r"\S"):
        build_origin(Url(url))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", ("/", "")),
        ("http://h?", ("/", "")),
        ("http://h?a={i}", ("/", "a={i}")),
        ("http://h/a/../b//", ("/a/../b//", "")),
        ("http://h/%4{i}?%2F", ("/%4{i}", "%2F")),
        ("http://h/ä|b?ü ", ("/%C3%A4%7Cb", "%C3%BC%20")),
    ],
)
def test_a_target_is_what_is_written(url: str, target: tuple[str, str]) -> None:
    """It is path and query, at least a slash; what cannot be sent is percent-encoded."""
    assert build_target(Url(url)) == target


@given(st.text(TARGET_CHARACTERS), st.text(TARGET_CHARACTERS + "?"))
def test_what_a_url_may_contain_stays(path: str, query: str) -> None:
    """It is neither decoded nor encoded nor made shorter."""
    assert build_target(Url(f"http://h/{path}?{query}")) == (f"/{path}", query)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_target_can_always_be_sent(text: str) -> None:
    """It has no white space, and nothing but ASCII."""
    path, query = build_target(Url(f"http://h/{text}"))
    assert (path + query).isascii()
    assert (path + query).isprintable()
    assert " " not in path + query

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from oku_core.http_client.request_head import (
    build_line_start,
    build_origin,
    build_target,
    list_own_headers,
    write_headers,
)
from oku_core.spec.values.template import Template
from oku_core.spec.values.url import Url

TARGET_CHARACTERS = string.ascii_letters + string.digits + "-._~/%:@!$&'()*+,;=[]{}"
PROXY = URL("http://ann:secret@proxy:3128")


def test_an_origin_says_where_to_connect() -> None:
    """The host stands in the form in which it can be looked up."""
    origins = {
        "http://host": "http://host",
        "http://HOST:8080/{i}": "http://host:8080",
        "HTTPS://host:8443/a?b": "https://host:8443",
        "http://[::1]:8080/{i}": "http://[::1]:8080",
        "http://straße.example?x": "http://xn--strae-oqa.example",
        "http://me:secret@host/{i}": "http://me:secret@host",
    }
    assert {url: build_origin(Url(url)) for url in origins} == {u: URL(o) for u, o in origins.items()}


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://host:99999999/{i}", "http://host:port/", "ftp://h/", "/h", "http:///x"]
)
def test_a_url_without_a_host_is_an_error(url: str) -> None:
    """What no check let through is not guessed."""
    with pytest.raises(ValueError, match=r"\S"):
        build_origin(Url(url))


def test_a_target_is_what_is_written() -> None:
    """It is path and query, at least a slash; what cannot be sent is percent-encoded."""
    targets = {
        "http://h": ("/", ""),
        "http://h?": ("/", ""),
        "http://h?a={i}": ("/", "a={i}"),
        "http://h/a/../b//": ("/a/../b//", ""),
        "http://h/%4{i}?%2F": ("/%4{i}", "%2F"),
        "http://h/ä|b?ü ": ("/%C3%A4%7Cb", "%C3%BC%20"),
    }
    assert {url: build_target(Url(url)) for url in targets} == targets


@given(st.text(TARGET_CHARACTERS), st.text(TARGET_CHARACTERS + "?"))
def test_what_a_url_may_contain_stays(path: str, query: str) -> None:
    """It is neither decoded nor encoded nor made shorter."""
    assert build_target(Url(f"http://h/{path}?{query}")) == (f"/{path}", query)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_target_can_always_be_sent(text: str) -> None:
    """It has no white space, and nothing but ASCII."""
    target = "".join(build_target(Url(f"http://h/{text}")))
    assert target.isascii()
    assert target.isprintable()
    assert " " not in target


def test_only_a_proxy_that_forwards_gets_the_target_in_absolute_form() -> None:
    """It gets the credentials in the URL of the proxy, too; to https, there is a tunnel."""
    plain, tls = URL("http://h:8080"), URL("https://h")
    assert build_line_start("GET", plain, PROXY) == "GET http://h:8080"
    assert dict(list_own_headers(plain, (), proxy=PROXY))["Proxy-Authorization"] == "Basic YW5uOnNlY3JldA=="
    for origin, proxy in ((plain, None), (tls, PROXY)):
        assert build_line_start("GET", origin, proxy) == "GET "
        assert "Proxy-Authorization" not in dict(list_own_headers(origin, (), proxy=proxy))


def test_the_host_and_the_credentials_are_those_of_the_url() -> None:
    """The host has its port unless that is the one of the scheme; user and password become a header."""
    expected = {
        "http://h:80/": ("h", None), "https://h:443/": ("h", None), "https://h:80/": ("h:80", None),
        "http://H.Example:8080/": ("h.example:8080", None), "http://[::1]/": ("[::1]", None),
        "http://[::1]:8080/": ("[::1]:8080", None), "http://straße.example/": ("xn--strae-oqa.example", None),
        "http://me:secret@h:8080/": ("h:8080", "Basic bWU6c2VjcmV0"), "http://me@h/": ("h", "Basic bWU6"),
        "http://a%40b:c%3A@h/": ("h", "Basic YUBiOmM6"),
    }  # fmt: skip
    own = {url: dict(list_own_headers(build_origin(Url(url)), ())) for url in expected}
    assert {url: (each["Host"], each.get("Authorization")) for url, each in own.items()} == expected


def test_a_header_of_the_user_replaces_that_of_oku() -> None:
    """Whichever it is; the host comes first."""
    origin = URL("http://ann:x@h:81")
    own = list_own_headers(origin, {"accept"}, has_body=True)
    assert own[0] == ("Host", "h:81")
    assert [name for name, _ in own[1:]] == ["Accept-Encoding", "User-Agent", "Authorization", "Content-Type"]
    assert list_own_headers(origin, {name.lower() for name, _ in own} | {"accept"}, has_body=True) == []


def test_no_header_can_begin_another_one() -> None:
    """Line breaks and NUL are refused in names and values, and values keep their placeholders."""
    written = write_headers([("A", "1"), ("B", Template.parse("x{i}"))]).bind_bytes()
    assert written(7) == b"A: 1\r\nB: x7\r\n"
    for name, value in (("A", "a\rb"), ("A", Template.parse("{i}\n")), ("A\0", "")):
        with pytest.raises(ValueError, match="has a line break or NUL"):
            write_headers([(name, value)])

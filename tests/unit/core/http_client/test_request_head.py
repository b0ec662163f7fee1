import pytest
from yarl import URL

from oku_core.http_client.client_rules import build_origin
from oku_core.http_client.request_head import build_line_start, list_own_headers, write_headers
from oku_core.spec.values.template import Template
from oku_core.spec.values.url import Url

PROXY = URL("http://ann:secret@proxy:3128")


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

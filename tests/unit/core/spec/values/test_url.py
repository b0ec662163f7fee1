from collections.abc import Callable

import pytest

from oku_core.spec.values.template import KNOWN_PLACEHOLDERS
from oku_core.spec.values.url import (
    Url,
    is_absolute,
    join_url,
    parse_base_url,
    parse_proxy,
    parse_reference,
    parse_urls,
)


def read_fault(value: object, parse: Callable[[object], object] = parse_urls) -> str:
    """Return the error for a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse(value)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost", "http://localhost:80/", "https://example.com/items/{i}",
        "http://example.com/?id={i}&again={i}", "http://[::1]:80/{i}", "http://127.0.0.1:65535/a%20b",
        "http://user:secret@example.com/", "http://bücher.example/ä", "HTTP://EXAMPLE.COM./",
        "http://example.com:/",
    ],
)  # fmt: skip
def test_a_url_stays_as_it_was_written(url: str) -> None:
    """This holds alone and in a list, with `{i}` in path or query and without it."""
    assert parse_urls(url) == (url,)
    assert parse_urls([url, url]) == (url, url)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "'' has no scheme, write http://host/"),
        ("example.com/{i}", "example.com/{i} has no scheme, write http://example.com/{i}"),
        ("//example.com/", "//example.com/ has no scheme, write http://example.com/"),
        ("://example.com/", "://example.com/ has no scheme, write http://example.com/"),
        ("x?y=http://z", "x?y=http://z has no scheme, write http://x?y=http://z"),
        ("ftp://example.com/", "ftp://example.com/ has the scheme ftp; only http and https are supported"),
        ("http://", "http:// has no host"),
        ("http:///path", "http:///path has no host"),
        ("http://:80/", "http://:80/ has no host"),
        ("http://user@/", "http://***@/ has no host"),
        ("http://[::1/", "http://[::1/ has an invalid host"),
        ("http://[nonsense]/", "http://[nonsense]/ has an invalid host"),
        ("http://a..b/", "http://a..b/ has an invalid host"),
        ("http://\u2100/", "http://\u2100/ has an invalid host"),
        ("http://h:0/", "http://h:0/ has a port that is not between 1 and 65535"),
        ("http://h:65536/", "http://h:65536/ has a port that is not between 1 and 65535"),
        ("http://h:-1/", "http://h:-1/ has a port that is not between 1 and 65535"),
        ("http://h:x/", "http://h:x/ has a port that is not between 1 and 65535"),
        ("http://h:٣/", "http://h:٣/ has a port that is not between 1 and 65535"),
        ("http://{i}.h/", "http://{i}.h/ has {i} in its host; only path and query may have it"),
        ("http://h:{i}/", "http://h:{i}/ has {i} in its host; only path and query may have it"),
        ("http://{sku}.h/", "http://{sku}.h/ has {sku} in its host; only path and query may have it"),
        (
            "http://h/{a b}",
            "http://h/{a b} contains whitespace or control characters",
        ),
        (
            "http://h/{a/b}",
            f"http://h/{{a/b}} has the unknown placeholder {{a/b}}; Oku knows {KNOWN_PLACEHOLDERS}",
        ),
        (
            "http://h/{i",
            f"http://h/{{i has the unknown placeholder {{i; Oku knows {KNOWN_PLACEHOLDERS}",
        ),
        (
            "http://h/i}",
            f"http://h/i}} has the unknown placeholder }}; Oku knows {KNOWN_PLACEHOLDERS}",
        ),
        (
            "http://h/{{i}}",
            f"http://h/{{{{i}}}} has the unknown placeholder {{0}}; Oku knows {KNOWN_PLACEHOLDERS}",
        ),
        ("http://h/#part", "http://h/#part has a fragment (#), which is never sent"),
        ("http://h/a b", "http://h/a b contains whitespace or control characters"),
        ("http://h/\t", r"'http://h/\t' contains whitespace or control characters"),
        ("http://h/\r\nHost: x", r"'http://h/\r\nHost: x' contains whitespace or control characters"),
        ("http://h/\x00", r"'http://h/\x00' contains whitespace or control characters"),
        ("http://h/\u2028", r"'http://h/\u2028' contains whitespace or control characters"),
        ("http://h/\ud800", r"'http://h/\ud800' has characters that UTF-8 cannot encode"),
        ([], "no URL is given"),
        (["http://h/", "h"], "h has no scheme, write http://h"),
        (["http://h/", None], "null is not text"),
        (None, "null is not text"),
        (5, "5 is not text, put it in quotes"),
        ({"http": "//h"}, "{'http': '//h'} is not text"),
    ],
)
def test_the_error_for_a_url_says_what_is_wrong(url: object, fault: str) -> None:
    """Each fault has its own sentence, which shows the URL."""
    assert read_fault(url) == fault


def test_urls_of_proxies_bases_and_targets_stay_as_they_were_written() -> None:
    """It may have a user."""
    for url in ["http://proxy.example:3128", "http://127.0.0.1:3128/", "http://me:secret@[::1]:8080"]:
        assert parse_proxy(url) == url
    for url in ["https://shop.example", "http://me:{env:P}@[::1]:8443/api/v1/", "http://h:1"]:
        # A base url stays as it was written. It may have a user, a port and a path, and secrets in them.
        assert parse_base_url(url) == url
    for url in ["/", "/items/{i}?a={i}", "?q={env:Q}", "//a", "http://h/{i}", "HTTPS://h"]:
        # A target has a path or a whole url. It stays as it was written.
        assert parse_reference(url) == url
        assert is_absolute(url) == (not url.startswith(("/", "?")))


def test_the_error_for_a_proxy_a_base_and_a_target_says_what_is_wrong() -> None:
    """Proxies are reached by plain HTTP only, and nothing is requested from the proxy itself."""
    cases: list[tuple[object, str]] = [
        ("https://h:3128", "https://h:3128 is not a proxy such as http://proxy.example:3128"),
        ("http://h/path", "http://h/path is not a proxy such as http://proxy.example:3128"),
        ("http://h/?q", "http://h/?q is not a proxy such as http://proxy.example:3128"),
        ("socks5://h:1080", "socks5://h:1080 has the scheme socks5; only http and https are supported"),
        ("h:3128", "h:3128 has no scheme, write http://h:3128"),
        ("http://h:3128/{i}", "http://h:3128/{i} is not a proxy such as http://proxy.example:3128"),
        (["http://h"], "['http://h'] is not text"),
    ]
    for url, fault in cases:
        assert read_fault(url, parse_proxy) == fault
    other_cases: list[tuple[object, str]] = [
        ("shop", "shop has no scheme, write http://shop"),
        ("http://h/?a", "http://h/?a has ? in it; a base URL has scheme, host, port and path"),
        ("http://me:pw@h/?", "http://***@h/? has ? in it; a base URL has scheme, host, port and path"),
        ("http://h/{i}", "http://h/{i} has {i} in it; a base URL has scheme, host, port and path"),
        (["http://h/"], "['http://h/'] is not text"),
    ]
    for url, fault in other_cases:
        # The error for a base url says what is wrong. Nothing can be put behind a query.
        assert read_fault(url, parse_base_url) == fault
    more_cases: list[tuple[object, str]] = [
        ("", "'' is neither a whole URL nor a path that begins with /"),
        ("items", "items is neither a whole URL nor a path that begins with /"),
        ("http:/h", "http:/h is neither a whole URL nor a path that begins with /"),
        ("/{sku", f"/{{sku has the unknown placeholder {{sku; Oku knows {KNOWN_PLACEHOLDERS}"),
        ("/a#b", "/a#b has a fragment (#), which is never sent"),
        ("/a\r\nHost: x", r"'/a\r\nHost: x' contains whitespace or control characters"),
        ("http://{i}/", "http://{i}/ has {i} in its host; only path and query may have it"),
        (None, "null is not text"),
    ]
    for url, fault in more_cases:
        # The error for the url of a target says what is wrong.
        assert read_fault(url, parse_reference) == fault


def test_a_url_has_its_parts() -> None:
    """It is split once, for everyone who sends requests, and its text stays as the user wrote it."""
    url = Url("HTTP://me:{env:P}@Example.COM:8080/a b/{i}?q={i}")
    assert (url.scheme, url.authority, url.host) == ("http", "me:{env:P}@Example.COM:8080", "example.com")
    assert (url.path, url.query) == ("/a b/{i}", "q={i}")
    with pytest.raises(ValueError, match="Invalid IPv6 URL"):
        Url("http://[::1/")
    assert (Url("http://h").path, Url("http://h").query, Url("/x").host) == ("", "", "")
    for base, reference, whole in [
        ("http://h", "/a", "http://h/a"),
        ("http://h/", "/a", "http://h/a"),
        ("http://h/api/", "/{i}?x", "http://h/api/{i}?x"),
        ("http://h/api", "/", "http://h/api/"),
        ("http://h/api/", "?x=1", "http://h/api/?x=1"),
        ("http://h/api", "?x=1", "http://h/api?x=1"),
        ("http://h/api", "//x", "http://h/api//x"),
        ("http://h/api", "https://other/", "https://other/"),
    ]:
        # A path is put behind the base url. With one slash between them; a whole URL goes where it says.
        joined = join_url(Url(base), reference)
        assert (joined, type(joined)) == (whole, Url)


def test_a_host_has_no_secret_and_at_most_253_characters() -> None:
    """Every resolver on the way would see it."""
    for host in ["{env:HOST}", "h:{env:PORT}", "a.{file:x}.example", "me@{env:HOST}"]:
        assert "has a secret in its host" in read_fault(f"http://{host}/x@y")
    # A host has at most 253 characters.
    longest = f"http://{'a.' * 126}b/"
    assert parse_urls(longest) == (longest,)
    for host in (f"{'a.' * 126}bc", "\u4e00\u4e01" * 30_000):
        assert read_fault(f"http://{host}/").endswith(" has an invalid host")

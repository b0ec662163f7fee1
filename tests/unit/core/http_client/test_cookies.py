"""RFC 6265, section by section."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.http_client.cookies import (
    LONGEST_ATTRIBUTE_BYTES,
    LONGEST_COOKIE_BYTES,
    MOST_COOKIES_OF_DOMAIN,
    MOST_DOMAINS,
    CookieJar,
    add_cookies,
    may_set_cookies,
    parse_date,
)

NOW_S = 1_000_000_000.0
URL = "http://www.example.com/a/b"
DATE_S = 784_111_777
"""Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110."""


def build_head(*cookies: str | bytes, name: str = "Set-Cookie") -> bytes:
    """The head of an answer that sets cookies."""
    texts = [each.encode() if isinstance(each, str) else each for each in cookies]
    lines = b"".join(name.encode() + b": " + text + b"\r\n" for text in texts)
    return b"HTTP/1.1 200 OK\r\nX: set-cookie: no=1\r\n" + lines + b"\r\n"


def fill(*cookies: str | bytes, url: str = URL, by_origin: bool = False) -> CookieJar:
    """A jar with the cookies of one answer."""
    jar = CookieJar(by_origin=by_origin)
    jar.store(build_head(*cookies), url, NOW_S)
    return jar


def find(jar: CookieJar, url: str = URL, now_s: float = NOW_S) -> str:
    """What goes back."""
    return jar.find(url, now_s)


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("session=abc==", "session=abc=="),
        ("sid=ab/cd+e==; Path=/", "sid=ab/cd+e=="),
        ("list=a,b", "list=a,b"), ('a="b c"', 'a="b c"'), ('a="b', 'a="b'),
        ('pref={"a":1}', 'pref={"a":1}'), (" \ta \t= b c \t; Path=/", "a=b c"), ("a=", "a="),
        ("a=b=c", "a=b=c"), ("a[1]@=x", "a[1]@=x"), ("$Version=1", "$Version=1"), ("a=1; b=2; c", "a=1"),
        ("a=1;", "a=1"), ("a=1;;;=;", "a=1"), ("a=x\ty", "a=x\ty"), ("a=café", "a=café"),
        (b"a=caf\xe9", "a=caf\udce9"), ("a", ""), ("a; b=1", ""), ("=1", ""), (" =1", ""), ("", ""),
        (";;", ""), ("a=x\x01y", ""), ("a=x\ry", ""), ("a=x; Path=/\x7f", ""),
    ],
)  # fmt: skip
def test_a_value_goes_back_as_it_was_written(line: str | bytes, sent: str) -> None:
    """Section 5.2: nothing is quoted or unquoted; without a name there is no cookie."""
    assert find(fill(line)) == sent


@given(st.binary(max_size=60))
def test_any_line_is_read(line: bytes) -> None:
    """Whatever a server writes: no error, and nothing goes back that it has not sent."""
    sent = find(fill(line)).encode("utf-8", "surrogateescape")
    assert not sent or {*sent} <= {*line, *b"="}
    assert b"\n" not in sent
    assert b"\r" not in sent


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 06-Nov-1994 08:49:37 GMT", "06 Nov 1994 08:49:37", "1994 November 6 8:49:37",
        "8:49:37 6 nov 94 PST", "Nov/06/1994/08:49:37", "6th NOV 1994AD 08:49:37.5",
        "\tSun~{06}[Nov]`1994'08:49:37", "Nov Nov 6 08:49:37 1994 2000", "06 Nov 1994 08:49:37 09:00:00",
    ],
)  # fmt: skip
def test_a_date_has_many_forms(text: str) -> None:
    """Section 5.1.1: four tokens in any order."""
    assert parse_date(text.encode()) == DATE_S


@pytest.mark.parametrize(
    "text",
    [
        "", "never", "0", "Sun, 06 Nov 1994", "06 Nov 08:49:37", "Nov 1994 08:49:37", "06 1994 08:49:37",
        "06 Nov 1994 08:49", "06 Nov 1994 008:49:37", "06 Nov 1994 08:49:370", "06 Nov 1994 x08:49:37",
        "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:37", "06 Nov 1994 08:49:60", "00 Nov 1994 08:49:37",
        "32 Nov 1994 08:49:37", "31 Nov 1994 08:49:37", "29 Feb 2023 08:49:37", "006 Nov 1994 08:49:37",
        "06NOVEMBER 1994 08:49:37", "06 No 1994 08:49:37", "06 Nov 1600 08:49:37",
        "06 Nov 19945 08:49:37", "06 Nov 9 08:49:37", "²6 Nov 1994 08:49:37", "-06 Nov 100 08:49:37",
    ],
)  # fmt: skip
def test_what_is_no_date(text: str) -> None:
    """Section 5.1.1: a token is missing, or there is no such day."""
    assert parse_date(text.encode()) is None


@pytest.mark.parametrize(
    ("year", "same"), [("69", "2069"), ("70", "1970"), ("99", "1999"), ("00", "2000"), ("099", "1999")]
)
def test_years_of_two_digits(year: str, same: str) -> None:
    """Section 5.1.1: from 1970 to 2069."""
    assert parse_date(f"01 Jan {year} 00:00:00".encode()) == parse_date(f"01 Jan {same} 00:00:00".encode())


@given(st.binary(max_size=60))
def test_any_date_is_read(text: bytes) -> None:
    """No error, whatever stands there."""
    assert parse_date(text) is None or isinstance(parse_date(text), float)


@pytest.mark.parametrize(
    ("attributes", "lasts_s"),
    [
        ("", float("inf")), ("Max-Age=10", 10), ("max-age = 10 ", 10), ("Max-Age=010", 10),
        ("Max-Age=0", 0), ("Max-Age=-1", 0), ("Max-Age=", float("inf")), ("Max-Age=-", float("inf")),
        ("Max-Age=+10", float("inf")), ("Max-Age=1_0", float("inf")), ("Max-Age=1.5", float("inf")),
        ("Max-Age=٣", float("inf")), (f"Max-Age={'9' * 500}", float("inf")),
        ("Max-Age=10; Max-Age=20", 20),
        ("Expires=Sun, 09 Sep 2001 01:46:50 GMT", 10),
        ("EXPIRES=Sunday, 09-Sep-01 01:46:50 GMT", 10),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Expires=Thu, 01-Jan-1970 00:00:01 GMT", 0),
        ("Expires=Mon, 01 Jan 0001 00:00:00 GMT", 0),
        ("Expires=never", float("inf")),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=10", 10),
        ("Max-Age=0; Expires=Wed, 01 Jan 2098 00:00:00 GMT", 0),
        ("Max-Age=x; Expires=Sun, 09 Sep 2001 01:46:50 GMT", 10),
    ],
)  # fmt: skip
def test_how_long_a_cookie_lasts(attributes: str, lasts_s: float) -> None:
    """Sections 5.2.1, 5.2.2 and 5.3, step 3: `Max-Age` goes before `Expires`."""
    jar = fill(f"a=1; {attributes}")
    if lasts_s == float("inf"):
        assert find(jar, now_s=NOW_S + 1e9) == "a=1"
    else:
        assert find(jar, now_s=NOW_S + lasts_s - 0.1) == ("a=1" if lasts_s else "")
        assert find(jar, now_s=NOW_S + lasts_s) == ""


@pytest.mark.parametrize(
    ("host", "domain", "goes_to", "stays_from"),
    [
        ("example.com", "", ["example.com", "EXAMPLE.com:81"], ["www.example.com", "com", "b-example.com"]),
        ("www.example.com", "example.com", ["www.example.com", "example.com", "a.b.example.com"], ["com"]),
        ("www.example.com", ".Example.COM", ["example.com", "www.example.com"], ["badexample.com", "x.com"]),
        ("example.com", "example.com", ["example.com", "www.example.com"], ["example.org"]),
        ("example.com", "www.example.com", [], ["example.com", "www.example.com"]),
        ("example.com", "ample.com", [], ["example.com", "ample.com"]),
        ("example.com", "other.com", [], ["example.com", "other.com"]),
        ("example.com", "..com", [], ["example.com"]),
        ("example.com", "example.com.", [], ["example.com"]),
        ("127.0.0.1", "", ["127.0.0.1", "127.0.0.1:8080"], ["127.0.0.2", "x.127.0.0.1"]),
        ("127.0.0.1", "127.0.0.1", ["127.0.0.1"], ["127.0.0.2"]),
        ("127.0.0.1", "0.0.1", [], ["127.0.0.1"]),
        ("[::1]:8080", "", ["[::1]", "[::1]:1"], ["[::2]"]),
        ("localhost", "localhost", ["localhost:1"], ["local"]),
        ("me:x@example.com", "", ["example.com", "you@example.com"], ["me"]),
        ("straße.example", "", ["xn--strae-oqa.example"], ["strasse.example"]),
    ],
)
def test_to_which_hosts_a_cookie_goes(
    host: str, domain: str, goes_to: list[str], stays_from: list[str]
) -> None:
    """Sections 5.1.3 and 5.3: without a domain to its host alone; with a domain of others to nobody."""
    jar = fill(f"a=1; Domain={domain}; Path=/", url=f"http://{host}/")
    hosts = [*goes_to, *stays_from]
    assert [each for each in hosts if find(jar, f"http://{each}/")] == goes_to


@pytest.mark.parametrize(
    ("url", "path", "goes_to", "stays_from"),
    [
        ("/a/b", "", ["/a", "/a/", "/a/c/d", "/a?b", "/a#b"], ["/", "/ab", "/b"]),
        ("/a/b/", "", ["/a/b", "/a/b/c"], ["/a", "/a/bc"]),
        ("/a", "", ["/", "/b"], []),
        ("/", "", ["/", "/b/c"], []),
        ("", "", ["", "/", "?x", "/b"], []),
        ("?x=/y/z", "", ["", "/b"], []),
        ("/a/b?c/d", "a/b", ["/a"], ["/", "/b"]),
        ("/a/b", "/", ["/", "", "/b"], []),
        ("/a/b", "/a/", ["/a/", "/a/c"], ["/a", "/ab"]),
        ("/a/b", "/other", ["/other", "/other/x", "/other?x"], ["/a/b", "/others"]),
        ("/a/b", "/%61", ["/%61"], ["/a"]),
        ("/a/b", "/A", ["/A"], ["/a"]),
    ],
)
def test_to_which_paths_a_cookie_goes(url: str, path: str, goes_to: list[str], stays_from: list[str]) -> None:
    """Section 5.1.4: without a path to that of the request up to its last slash."""
    jar = fill(f"a=1; Path={path}", url=f"http://h{url}")
    assert [each for each in [*goes_to, *stays_from] if find(jar, f"http://h{each}")] == goes_to


@pytest.mark.parametrize("attribute", ["Secure", "secure", "SECURE=no", " Secure "])
def test_a_secure_cookie_goes_over_tls_alone(attribute: str) -> None:
    """Section 5.4, whatever stands behind the name."""
    jar = fill(f"a=1; {attribute}", "b=2; HttpOnly; SameSite=Strict; Partitioned", url="https://h/")
    assert find(jar, "https://h/") == "a=1; b=2"
    assert find(jar, "HTTPS://h/") == "a=1; b=2"
    assert find(jar, "http://h/") == "b=2"


def test_a_prefix_of_a_name_promises_attributes() -> None:
    """A cookie that lacks them is ignored, as in browsers (RFC 6265bis, section 4.1.3)."""
    lines = {
        "__Secure-a=1; Secure": True,
        "__Secure-a=1": False,
        "__secure-a=1; Path=/": False,
        "__Host-a=1; Secure; Path=/": True,
        "__Host-a=1; Secure; Path=/; Domain=": True,
        "__Host-a=1; Secure": False,
        "__HOST-a=1; Path=/": False,
        "__Host-a=1; Secure; Path=/; Domain=a.example": False,
        "__Other-a=1": True,
    }
    assert {
        line: bool(find(fill(line, url="https://a.example/"), "https://a.example/")) for line in lines
    } == lines
    assert find(fill("__Secure-a=1; Secure", url="http://a.example/"), "https://a.example/") == ""


def test_the_longest_path_comes_first_and_then_the_oldest() -> None:
    """Section 5.4, step 2; one that is set again keeps its age."""
    jar = fill("a=1; Path=/", "b=2; Path=/a", "c=3; Path=/", "a=4; Path=/a", "d=5; Path=/a/b")
    assert find(jar) == "d=5; b=2; a=4; a=1; c=3"
    jar.store(build_head("a=6; Path=/"), URL, NOW_S)
    assert find(jar) == "d=5; b=2; a=4; a=6; c=3"


@pytest.mark.parametrize(
    ("first", "second"),
    [("a=1; Path=/; Domain=example.com", "b=2; Path=/"), ("a=1; Path=/", "b=2; Path=/; Domain=example.com")],
)
def test_the_oldest_comes_first_whatever_its_domain(first: str, second: str) -> None:
    """The order is that of all cookies, not that of the cookies of a domain."""
    assert find(fill(first, second)) == "a=1; b=2"


@pytest.mark.parametrize(
    ("second", "left"),
    [
        ("a=2; Path=/", "a=2"),
        ("a=; Path=/; Max-Age=0", ""),
        ("a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", ""),
        ("a=; Path=/a; Max-Age=0", "a=1"),
        ("A=; Path=/; Max-Age=0", "a=1"),
        ("a=; Path=/; Domain=example.com; Max-Age=0", "a=1"),
        ("a=; Path=/; Domain=www.example.com; Max-Age=0", ""),
    ],
)
def test_a_cookie_is_replaced_or_deleted(second: str, left: str) -> None:
    """Section 5.3, step 11: by name, domain and path."""
    jar = fill("a=1; Path=/")
    jar.store(build_head(second), URL, NOW_S)
    assert find(jar) == left


@pytest.mark.parametrize("name", ["Set-Cookie", "set-cookie", "SET-COOKIE", "Set-Cookie "])
def test_the_header_may_be_written_in_any_case(name: str) -> None:
    """Also with a blank before its colon, which the reader accepts."""
    head = build_head("a=1", name=name)
    assert may_set_cookies(head)
    jar = CookieJar()
    jar.store(head, URL, NOW_S)
    assert find(jar) == "a=1"


def test_cookies_of_an_origin_go_back_to_it_alone() -> None:
    """Also those for a domain; the default port is the same origin."""
    jar = fill("a=1; Path=/; Domain=example.com", "b=2; Path=/", "c=3; Domain=other.com", by_origin=True)
    assert find(jar, "http://www.example.com:80/") == "a=1; b=2"
    others = ("https://www.example.com/", "http://www.example.com:81/", "http://example.com/")
    assert [find(jar, url) for url in others] == [""] * len(others)


def test_an_empty_jar() -> None:
    """Nothing has come, or all is forgotten."""
    jar = CookieJar()
    assert jar.is_empty
    jar.store(build_head("a; b"), URL, NOW_S)
    jar.store(build_head("a=1; Max-Age=0"), URL, NOW_S)
    assert jar.is_empty
    jar.store(build_head("a=1"), URL, NOW_S)
    assert not jar.is_empty
    jar.clear()
    assert (jar.is_empty, find(jar)) == (True, "")
    jar.store(build_head("b=1"), URL, NOW_S)
    assert find(jar) == "b=1"


def test_long_cookies_are_ignored() -> None:
    """As by browsers: name and value together, and each attribute by itself."""
    longest = "a=" + "x" * (LONGEST_COOKIE_BYTES - 1)
    assert find(fill(longest)) == longest
    assert find(fill(longest + "x")) == ""
    path = "/" + "x" * LONGEST_ATTRIBUTE_BYTES
    assert find(fill(f"a=1; Path={path}"), "http://www.example.com/a/c") == "a=1"
    assert find(fill("a=1", url=f"http://h{path}/x"), f"http://h{path}/x") == ""


def test_a_domain_has_so_many_cookies() -> None:
    """First those go that have expired, and then the oldest."""
    jar = fill("old=0; Path=/", "brief=0; Path=/; Max-Age=1")
    for number in range(MOST_COOKIES_OF_DOMAIN - 1):
        jar.store(build_head(f"n{number}=1; Path=/"), URL, NOW_S + 2)
    names = [pair.partition("=")[0] for pair in find(jar, now_s=NOW_S + 2).split("; ")]
    assert names == ["old", *(f"n{number}" for number in range(MOST_COOKIES_OF_DOMAIN - 1))]
    jar.store(build_head("last=1; Path=/"), URL, NOW_S + 2)
    assert find(jar, now_s=NOW_S + 2).startswith("n0=1; ")
    assert find(jar, now_s=NOW_S + 2).endswith("; last=1")


@pytest.mark.parametrize("by_origin", [True, False])
def test_so_many_domains_have_cookies(*, by_origin: bool) -> None:
    """The first that came goes first."""
    jar = CookieJar(by_origin=by_origin)
    for number in range(MOST_DOMAINS + 1):
        jar.store(build_head("a=1"), f"http://h{number}.example/", NOW_S)
    kept = [find(jar, f"http://h{number}.example/") for number in range(MOST_DOMAINS + 1)]
    assert kept == ["", *["a=1"] * MOST_DOMAINS]


def test_a_domain_whose_cookies_were_deleted_takes_no_room() -> None:
    """Hosts that delete what they have set do not drive out others."""
    jar = fill("session=1; Path=/")
    for number in range(MOST_DOMAINS + 1):
        jar.store(build_head("a=1"), f"http://h{number}.example/", NOW_S)
        jar.store(build_head("a=; Max-Age=0"), f"http://h{number}.example/", NOW_S)
    assert find(jar) == "session=1"


def test_cookies_of_the_user_stand_beside_those_of_the_server() -> None:
    """Of two with one name, the server's counts; without one of the server, nothing is altered."""
    table = [
        ([], "", "a=1", ["a=1"]),
        (["b=2"], "", "a=1", ["b=2; a=1"]),
        (["a=0; b=2;"], "", "a=1", ["b=2; a=1"]),
        (["a=x=="], "", "b=1", ["a=x==; b=1"]),
        (["b=2", "c=3"], "", "a=1", ["b=2; c=3; a=1"]),
        ([], "b=2;c=3", "a=1", ["b=2; c=3; a=1"]),
        (["b=2"], "c=3", "a=1", ["b=2; a=1"]),
        (["b=2;"], "", "", ["b=2;"]),
    ]
    found = []
    for own, common, kept, _ in table:
        headers = [("A", "b"), *(("cookie", value) for value in own), ("C", "d")]
        sent = add_cookies(headers, kept, common)
        assert [header for header in sent if header[0] in ("A", "C")] == [("A", "b"), ("C", "d")]
        found.append((own, common, kept, [value for name, value in sent if name.lower() == "cookie"]))
    assert found == table

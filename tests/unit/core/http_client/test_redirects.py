import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from oku_core.http_client.redirects import (
    NOT_A_URL,
    Hop,
    RedirectChain,
    RedirectError,
    join_location,
    next_hop,
)

HERE = URL("http://127.0.0.1:8080/a/b?x=%7e", encoded=True)


@pytest.mark.parametrize(
    ("location", "following"),
    [
        ("/c", "http://127.0.0.1:8080/c"),
        ("c", "http://127.0.0.1:8080/a/c"),
        ("//h/c", "http://h/c"),
        (f"https://{'a' * 60}.example/", f"https://{'a' * 60}.example/"),
        (f"/{'a' * 10_000}", f"http://127.0.0.1:8080/{'a' * 10_000}"),
        (f"http://h/{'a' * 10_000}", f"http://h/{'a' * 10_000}"),
        ("http://me:secret@h/", "http://h/"),
        ("/A_%26_B?next=http%3A//e.example/", "http://127.0.0.1:8080/A_%26_B?next=http%3A//e.example/"),
        ("/%c3%a9/%41+b%2Fc?d=%20e+f", "http://127.0.0.1:8080/%c3%a9/%41+b%2Fc?d=%20e+f"),
        ("/é?é#é", "http://127.0.0.1:8080/%C3%A9?%C3%A9"),
        ("/caf\udce9", "http://127.0.0.1:8080/caf%E9"),
        ("/a b?{i}", "http://127.0.0.1:8080/a%20b?%7Bi%7D"),
        ("/~!$&'()*+,;=:@[]%", "http://127.0.0.1:8080/~!$&'()*+,;=:@[]%"),
        (" /c\t ", "http://127.0.0.1:8080/c"),
        ("", "http://127.0.0.1:8080/a/b?x=%7e"),
        ("#c", "http://127.0.0.1:8080/a/b?x=%7e"),
        ("?y", "http://127.0.0.1:8080/a/b?y"),
        ("?", "http://127.0.0.1:8080/a/b"),
        ("?#c", "http://127.0.0.1:8080/a/b"),
        (".", "http://127.0.0.1:8080/a/"),
        ("..", "http://127.0.0.1:8080/"),
        ("../../../c/./d/../e", "http://127.0.0.1:8080/c/e"),
        ("/a//b/%2e%2e/c/..", "http://127.0.0.1:8080/a//b/%2e%2e/"),
        ("//h", "http://h/"),
        ("http:c", "http://127.0.0.1:8080/a/c"),
        ("http://h/a/../b//c?d/../e", "http://h/b//c?d/../e"),
        ("HTTP://STRASSE.example/", "http://strasse.example/"),
        ("http://straße.example/", "http://xn--strae-oqa.example/"),
        ("https://[::1]:8443", "https://[::1]:8443/"),
    ],
)
def test_a_redirection_leads_somewhere(location: str, following: str) -> None:
    """As it is written; its length does not matter, but for the name of a host."""
    assert str(join_location(HERE, location)) == following


@pytest.mark.parametrize("begin", ["http://", " \x00HTTPS://", "h\tttp:/\t/", "http://me:secret@"])
@pytest.mark.parametrize("letter", ["a", "\u4e00", "a.", "a\t"])
def test_a_host_that_is_too_long_is_no_url(begin: str, letter: str) -> None:
    """It would take long to encode."""
    with pytest.raises(RedirectError, match=NOT_A_URL):
        join_location(HERE, begin + letter * 600 + "/")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("ftp://127.0.0.1/", "a redirection to a URL of ftp"),
        ("mailto:nobody@localhost", "a redirection to a URL of mailto"),
        ("javascript:alert(1)", "a redirection to a URL of javascript"),
        *[
            (location, NOT_A_URL)
            for location in (
                "http://[::1", "http://127.0.0.1:99999/", "http://h:x/", "http://a b/", "http://:80/",
                "https:c", "http://\udce9/", "http://a\x00b/", "http://me@/",
            )
        ],
    ],
)  # fmt: skip
def test_a_redirection_leads_nowhere(location: str, reason: str) -> None:
    """Its reason says why."""
    with pytest.raises(RedirectError, match=reason):
        join_location(HERE, location)


@pytest.mark.parametrize(
    ("here", "location", "following"),
    [
        ("http://me:x@h/a", "b", "http://me:x@h/b"),
        ("http://me:x@h/a", "http://h:80/b", "http://me:x@h/b"),
        ("http://me:x@h/a", "http://you@h/b", "http://me:x@h/b"),
        ("http://me:x@h/a", "https://h/b", "https://h/b"),
        ("http://h/a", "http://you@h/b", "http://you@h/b"),
    ],
)
def test_a_user_stays_within_the_origin(here: str, location: str, following: str) -> None:
    """It is the one that the spec has named."""
    assert str(join_location(URL(here), location)) == following


@given(st.text(max_size=30))
def test_any_location_is_read(location: str) -> None:
    """It leads somewhere that can be asked, or there is a reason."""
    try:
        url = join_location(HERE, location)
    except RedirectError:
        return
    assert url.raw_path_qs.isascii()
    assert url.raw_path_qs.isprintable()
    assert " " not in url.raw_path_qs


def follow(method: str, status: int, location: bytes = b"/there", **fields: bool) -> Hop | None:
    """The request after one with a body."""
    head = b"HTTP/1.1 %d On\r\nlocation: %b\r\n\r\n" % (status, location)
    has_body = fields.get("has_body", True)
    return next_hop(
        Hop(method, HERE, has_body), status, head, has_certificate=fields.get("has_certificate", False)
    )


@pytest.mark.parametrize(
    ("method", "statuses", "following", "keeps_content"),
    [
        ("POST", (301, 302, 303), "GET", False),
        ("POST", (307, 308), "POST", True),
        ("PUT", (301, 302, 307, 308), "PUT", True),
        ("PUT", (303,), "GET", False),
        ("HEAD", (301, 302, 303, 307, 308), "HEAD", True),
        ("GET", (301, 302, 307, 308), "GET", True),
        ("GET", (303,), "GET", False),
    ],
)
def test_the_method_of_the_next_request(
    method: str, statuses: tuple[int, ...], following: str, *, keeps_content: bool
) -> None:
    """As in browsers; a GET in the place of another request has no body."""
    there = URL("http://127.0.0.1:8080/there")
    for status in statuses:
        assert follow(method, status) == Hop(following, there, keeps_content, keeps_content)


@pytest.mark.parametrize("status", [200, 300, 304, 305, 404])
def test_other_statuses_lead_nowhere(status: int) -> None:
    """Whatever their `Location`; nor does an empty one."""
    assert follow("GET", status) is None
    assert follow("GET", 302, b"") is None


def test_another_origin() -> None:
    """It gets no body, and nobody who could ask for the certificate; the way back is foreign, too."""
    with pytest.raises(RedirectError, match="with a body to another origin"):
        follow("POST", 307, b"http://h/")
    with pytest.raises(RedirectError, match="client certificate"):
        follow("GET", 302, b"https://h/", has_body=False, has_certificate=True)
    hop = follow("GET", 302, b"http://h/", has_body=False, has_certificate=True)
    assert hop is not None
    assert hop.is_foreign
    back = next_hop(
        hop, 302, b"HTTP/1.1 302 On\r\nLocation: %b\r\n" % str(HERE).encode(), has_certificate=True
    )
    assert back == Hop("GET", HERE, has_body=False, is_foreign=True)


def build_chain(most: int) -> RedirectChain[bytes]:
    """A POST with a body to `HERE`."""
    headers = [("Content-Type", "text/plain"), ("X", "1")]
    return RedirectChain(Hop("POST", HERE, has_body=True), headers, b"body", most, has_certificate=False)


def test_each_request_of_a_chain_has_what_its_place_may_see() -> None:
    """A GET has no body and no headers about it; no origin but the first gets headers, nor that one later."""
    chain = build_chain(4)
    seen = []
    for status, url in ((307, "/"), (302, "/"), (302, "http://other/"), (302, str(HERE))):
        assert chain.follow(status, f"HTTP/1.1 302 On\r\nLocation: {url}\r\n\r\n".encode())
        seen.append((chain.hop.method, [name for name, _ in chain.headers], chain.body))
    assert seen == [
        ("POST", ["Content-Type", "X"], b"body"), ("GET", ["X"], None), ("GET", [], None), ("GET", [], None)
    ]  # fmt: skip


def test_the_end_of_a_chain() -> None:
    """A response that redirects nowhere, any response if none is followed; the limit is an error."""
    head = b"HTTP/1.1 302 On\r\nLocation: /\r\n\r\n"
    assert not build_chain(1).follow(200, head)
    assert not build_chain(0).follow(302, head)
    chain = build_chain(1)
    assert chain.follow(302, head)
    with pytest.raises(RedirectError, match="more than 1 redirections"):
        chain.follow(302, head)

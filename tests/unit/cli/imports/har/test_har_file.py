import json
from typing import Any

import pytest

from oku_cli.imports.har.har_file import HarChoice, read_har
from oku_cli.imports.imported_spec import ImportedSpec

ALL = HarChoice()
OVER_HTTP1 = "Sent as HTTP/1.1, but recorded over"


def entry(
    url: str, method: str = "GET", status: int = 200, kind: str = "text/html", **request: Any
) -> dict[str, Any]:
    """Make an entry as browsers write it."""
    return {
        "request": {"method": method, "url": url, "headers": [{"name": "Host", "value": "h"}], **request},
        "response": {"status": status, "content": {"mimeType": kind}},
    }


def read(*entries: Any, choice: HarChoice = ALL) -> ImportedSpec:
    """Read a file with these entries."""
    return read_har(json.dumps({"log": {"entries": entries}}).encode(), choice)


def test_equal_requests_are_one_with_their_number() -> None:
    """A query makes a URL another one, a fragment does not."""
    imported = read(
        entry("http://h/a"), entry("http://h/a#x"), entry("http://h/a?b"), entry("http://h/a", "POST")
    )
    assert [(each.method, each.url, each.weight) for each in imported.requests] == [
        ("GET", "http://h/a", 2),
        ("GET", "http://h/a?b", 1),
        ("POST", "http://h/a", 1),
    ]
    assert all(each.headers == [] for each in imported.requests)


@pytest.mark.parametrize(
    ("versions", "settings", "notes"),
    [
        (["HTTP/2"], {"http2": True}, []),
        (["h2", "http/2.0", "HTTP/2.0"], {"http2": True}, []),
        (["HTTP/1.1", "http/1.1"], {}, []),
        (["", "unknown", None, 2], {}, []),
        (
            ["h2", "h2", "http/1.1", "h3"], {},
            [f"{OVER_HTTP1} HTTP/2 (2), HTTP/3 (1); http2: true sends all over HTTP/2."],
        ),
        (["h3"], {}, [f"{OVER_HTTP1} HTTP/3 (1); http2: true sends all over HTTP/2."]),
    ],
)  # fmt: skip
def test_what_was_recorded_over_http2_is_sent_so(
    versions: list[Any], settings: dict[str, Any], notes: list[str]
) -> None:
    """Only if all of it was; the answer says which version it was."""
    entries = [entry("https://h/", httpVersion="HTTP/1.1") for _ in versions]
    for each, version in zip(entries, versions, strict=True):
        each["response"]["httpVersion"] = version
    imported = read(*entries)
    assert (imported.settings, imported.notes) == (settings, notes)


def test_the_version_of_a_request_is_taken_where_its_answer_has_none() -> None:
    """What is left out does not matter."""
    imported = read(entry("https://h/", httpVersion="h2"), entry("https://h/a.css", httpVersion="h3"))
    assert imported.settings == {"http2": True}


def test_only_the_first_page_s_host_is_taken() -> None:
    """The first page is where a redirection ends; trackers and assets are left out, and named."""
    page, api = entry("https://shop.test/"), entry("https://shop.test/api")
    (request,) = read(entry("http://old.test/", status=301), page).requests
    assert request.url == "https://shop.test/"
    imported = read(entry("http://shop.test/", status=301), page, api)
    assert [each.url for each in imported.requests] == [
        "http://shop.test/", "https://shop.test/", "https://shop.test/api",
    ]  # fmt: skip
    entries = [
        entry("http://h/"),
        entry("https://t/x"),
        entry("http://h/a.css"),
        entry("http://h/i", kind="image/png"),
    ]
    imported = read(*entries)
    assert [each.url for each in imported.requests] == ["http://h/"]
    (note,) = imported.notes
    assert note == "Left out: 2 images, fonts, styles or scripts (--assets takes them), 1 of https://t."
    assert len(read(*entries, choice=HarChoice(assets=True)).requests) == 3
    assert [each.url for each in read(*entries, choice=HarChoice(include=["//t/"])).requests] == [
        "https://t/x"
    ]
    assert len(read(*entries, choice=HarChoice(exclude=[".css"], assets=True)).requests) == 2


@pytest.mark.parametrize(
    ("statuses", "expected"), [([200], []), ([304], []), ([201], [201]), ([404, 200], [200, 404]), ([0], [])]
)
def test_statuses_are_those_of_the_recording(statuses: list[int], expected: list[int]) -> None:
    """A browser's cache makes 304 of 200, and 0 is what it has blocked."""
    (request,) = read(*(entry("http://h/", status=status) for status in statuses)).requests
    assert request.statuses == expected


def test_what_a_request_has_beside_its_headers_is_taken_over() -> None:
    """The first of its bodies with its type, its cookies and its query, unless its headers and its URL
    have these.
    """
    bodies: list[dict[str, Any]] = [{"postData": {"text": text}} for text in ("a", "b")]
    (request,) = read(*(entry("http://h/", "POST", **body) for body in bodies)).requests
    assert request.body == "a"
    assert request.notes == ["it was sent with several bodies; this is the first"]
    cookies = [{"name": "a", "value": "1"}, {"name": "b", "value": "2="}]
    posted = {"mimeType": "text/x", "text": "y"}
    query = [{"name": "q", "value": "a b"}]
    (request,) = read(
        entry("http://h/", "POST", cookies=cookies, postData=posted, queryString=query)
    ).requests
    assert request.url == "http://h/?q=a+b"
    assert request.headers == [("Content-Type", "text/x"), ("Cookie", "a=1; b=2=")]
    headers = [
        {"name": "cookie", "value": "c=3"}, {"name": "content-type", "value": "text/z"},
        {"name": "cookie", "value": "d=4"}, {"name": ":path", "value": "/"},
    ]  # fmt: skip
    (request,) = read(
        entry("http://h/?q", "POST", headers=headers, cookies=cookies, postData=posted, queryString=query)
    ).requests
    assert request.url == "http://h/?q"
    assert request.headers == [("content-type", "text/z"), ("Cookie", "c=3; d=4")]


def test_what_is_no_har_file_is_said() -> None:
    """In one line; so is a choice that leaves no request."""
    for content, message in [
        (b"no", "is not JSON: Expecting value"),
        (b"[]", "it has no log.entries"),
        (b"{}", "it has no log.entries"),
        (b'{"log": []}', "it has no log.entries"),
        (
            b'{"log": {"entries": [{}, 1, {"request": {"method": "GET", "url": "data:x"}}]}}',
            "no HTTP request",
        ),
        (
            b'{"log": {"entries": [{"request": {"method": "GET", "url": "ws://h/"}}]}}',
            "no request is left of 1: 1 web sockets",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            read_har(content, ALL)
    with pytest.raises(ValueError, match="no request is left of 1: 1 not included"):
        read(entry("http://h/"), choice=HarChoice(include=["x"]))


def test_web_sockets_are_left_out() -> None:
    """They are no requests that could be sent again."""
    imported = read(entry("wss://x/"), entry("http://h/"), entry("http://h/ws", status=101))
    assert imported.notes == ["Left out: 2 web sockets."]
    # What is of another kind than har has is passed over. The request is taken without it.
    odd = {"request": {"method": "GET", "url": "http://h/", "headers": 1}, "response": {"status": [200]}}
    (request,) = read(odd).requests
    assert (request.url, request.headers, request.statuses) == ("http://h/", [], [])
    # Connections that were closed are closed. If that was so for all requests.
    closing = entry("http://h/a", headers=[{"name": "Connection", "value": "close"}])
    assert read(closing).settings == {"keepalive": False}
    assert read(closing, entry("http://h/b")).settings == {}

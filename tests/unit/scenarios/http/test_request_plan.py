from typing import Any

import pytest

from oku.http.request_plan import RequestPlan, build_plan_url, check_value
from oku_core.process.redaction import hide
from oku_core.spec.values.url import Url


class Origin:
    """Where a plan leads; it is not connected to here."""

    proxy = None


def plan(url: str, columns: tuple[str, ...] = (), method: str = "GET") -> RequestPlan:
    """A plan of a request."""
    origin: Any = Origin()
    return RequestPlan(method, Url(url), columns, origin)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://host", b"GET / HTTP/1.1\r\n"),
        ("http://host?a=b", b"GET /?a=b HTTP/1.1\r\n"),
        ("http://host/a%20b/\u00fc?x={y}", b"GET /a%20b/%C3%BC?x={y} HTTP/1.1\r\n"),
        ("http://host/{literal:i}?{literal:y}", b"GET /{i}?{y} HTTP/1.1\r\n"),
    ],
)
def test_what_is_the_same_for_every_index_is_written_once(url: str, line: bytes) -> None:
    """It is the request line itself."""
    assert plan(url).line == line
    assert plan(url).build_line(None, {}) == line


def test_the_index_and_columns_are_filled_in() -> None:
    """A value stays one part of a path or of a query."""
    found = plan("http://host/{i}/{a}?b={a}&i={i}{other}", ("a",))
    assert found.line is None
    assert found.build_line(7, {"a": "x/y&\u00fc"}) == (
        b"GET /7/x%2Fy%26%C3%BC?b=x%2Fy%26%C3%BC&i=7{other} HTTP/1.1\r\n"
    )
    assert found.build_url(7, {"a": "x"}, "c=d") == "http://host/7/x?b=x&i=7{other}&c=d"


def test_a_query_is_added() -> None:
    """Behind what is there."""
    assert plan("http://host/").build_target(None, {}, "a=b") == "/?a=b"
    assert plan("http://host/?c").build_target(None, {}, "a=b") == "/?c&a=b"


def test_outside_of_iterations_there_is_no_index() -> None:
    """Nor a row."""
    with pytest.raises(ValueError, match=r"has \{i\} in it, which there is only in an iteration"):
        plan("http://host/{i}").build_line(None, {})
    with pytest.raises(ValueError, match=r"has \{a\} in it, which there is only in an iteration"):
        plan("http://host/{a}", ("a",)).build_line(3, {})


@pytest.mark.parametrize(
    ("base", "url", "whole"),
    [
        ("http://host", "/a", "http://host/a"), ("http://host/v1/", "/a", "http://host/v1/a"),
        ("http://host/v1", "?a=b", "http://host/v1?a=b"), (None, "HTTPS://other/a#b", "HTTPS://other/a"),
    ],
)  # fmt: skip
def test_urls_stand_behind_the_base_url(base: str | None, url: str, whole: str) -> None:
    """Those that are whole stand for themselves; a fragment is never sent."""
    assert build_plan_url(None if base is None else Url(base), url) == whole


@pytest.mark.parametrize("value", ["a\rb", "a\nb", "a\0b"])
def test_headers_end_where_they_end(value: str) -> None:
    """What would end one before is refused."""
    with pytest.raises(ValueError, match="the header 'X-A' has a line break or NUL"):
        check_value("X-A", value)
    with pytest.raises(ValueError, match="is not the name of a header"):
        check_value(f"X{value}", "a")


def test_bytes_of_a_header_are_sent_as_they_are() -> None:
    """Whether they can be changed or not."""
    assert [check_value("X-A", value) for value in (b"q", bytearray(b"q"))] == ["q", "q"]


def test_no_part_of_a_secret_is_left_where_a_wrong_name_is_cut() -> None:
    """It is masked before."""
    secret = "plan-hunter2/" * 10
    hide(secret)
    with pytest.raises(ValueError, match=r"^\*\*\* is not the name of a header"):
        check_value(secret, "a")
    with pytest.raises(ValueError, match=r"^\*\*\* is not a method"):
        plan("http://host", method=secret)

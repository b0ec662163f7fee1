import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.framing import asks_to_close, find_framing_fault
from oku_core.spec.parser import Source, SpecError, parse_spec

OWN = "; leave the header out, Oku sends it"
REFUSED = [
    ("Content-Length: 5", "größe", f"Content-Length: 5: the body has 7 bytes{OWN}"),
    ("content-length: 5", None, f"content-length: 5: the body has 0 bytes{OWN}"),
    ("Content-Length: -0", "", f"Content-Length: -0: the body has 0 bytes{OWN}"),
    ("Content-Length: ٣", "abc", f"Content-Length: ٣: the body has 3 bytes{OWN}"),
    ("Content-Length: 3", "{i}", f"Content-Length: 3: the length of a body with {{i}} in it varies{OWN}"),
    ("Content-Length: {i}", "abc", f"Content-Length: {{i}}: the body has 3 bytes{OWN}"),
    ("Transfer-Encoding: chunked", "a", "Transfer-Encoding: chunked: bodies are sent whole"),
    ("TRANSFER-ENCODING:identity", None, "TRANSFER-ENCODING: identity: bodies are sent whole"),
    ("Expect: 100-continue", "a", "Expect: 100-continue: bodies are sent at once"),
    ("Upgrade: h2c", None, "Upgrade: h2c: connections are for HTTP/1.1 alone"),
    ("Connection: upgrade", None, "Connection: upgrade: only close and keep-alive are known"),
    ("Connection: keep-alive, {i}", None, "Connection: keep-alive, {i}: only close and keep-alive are known"),
]


@pytest.mark.parametrize(("header", "body", "fault"), REFUSED)
def test_a_header_that_breaks_the_framing_is_refused(header: str, body: str | None, fault: str) -> None:
    """It is named with its value, and with what is true or allowed."""
    told = find_framing_fault([header], body)
    assert told is not None
    assert told.startswith(fault)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([], "x{i}"),
        (["Content-Length: 7"], "größe"),
        (["Content-Length: 0"], None),
        (["Connection: close"], None),
        (["connection: Keep-Alive, close", "Keep-Alive: 5"], None),
        (["Host: {i}.example"], None),
        (["X-Content-Length: 5", "Accept: a", "Accept: b"], "abc"),
    ],
)
def test_a_header_that_is_true_may_be_sent(headers: list[str], body: str | None) -> None:
    """Who knows the length may say it, and a connection may be used once."""
    assert find_framing_fault(headers, body) is None


@given(st.text(st.characters(codec="utf-8")).filter(lambda body: "{i}" not in body), st.integers(0, 200))
def test_a_length_is_allowed_if_it_is_that_of_the_bytes(body: str, length: int) -> None:
    """Of UTF-8, as it is sent."""
    is_allowed = find_framing_fault([f"Content-Length: {length}"], body) is None
    assert is_allowed is (length == len(body.encode()))


@pytest.mark.parametrize("name", ["Host", "Content-Length"])
def test_what_there_may_be_one_of_stands_once(name: str) -> None:
    """A target would have to choose."""
    assert find_framing_fault([f"{name}: 0", f"{name.lower()}: 0"], None) == f"{name}: is given twice"


def test_the_writer_is_told_where_it_stands() -> None:
    """The header's place, wherever the body is."""
    file = Source("spec.yaml", {"header": {"Content-Length": "5"}})
    with pytest.raises(SpecError, match=r"^spec\.yaml: header: Content-Length: 5: the body has 3 bytes"):
        parse_spec(file, Source(None, {"body": "abc"}))


def test_who_asks_to_close_is_understood() -> None:
    """In any case, beside other options."""
    assert asks_to_close(["A: b", "CONNECTION: keep-alive , Close"])
    assert not asks_to_close(["Connection: keep-alive", "X: close"])

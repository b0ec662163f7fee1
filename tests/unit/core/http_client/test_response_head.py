import pytest

from oku_core.http_client.response_head import find_values, split_headers

HEAD = b"HTTP/1.1 200 OK\r\nLOCATION:  /a \r\nX: b: c\r\nx : caf\xe9\r\nFolded: a\r\n\tb\r\nno colon\r\n\r\n"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (b"location", [b"/a"]),
        (b"x", [b"b: c", b"caf\xe9"]),
        (b"folded", [b"a b"]),
        (b"b", []),
        (b"no colon", []),
        (b"http/1.1 200 ok", []),
        (b"other", []),
    ],
)
def test_values_of_a_header(name: bytes, values: list[bytes]) -> None:
    """All of one name, in their order, as they were sent."""
    assert find_values(HEAD, name) == values


def test_all_headers() -> None:
    """In any case, and with bytes that are no UTF-8."""
    headers = split_headers(HEAD)
    assert headers["location"] == "/a"
    assert headers.getall("X") == ["b: c", "caf\udce9"]
    assert "no colon" not in headers

from oku_server.answer import CLOSE, build_error, build_ok


def test_a_head_tells_status_length_and_delay() -> None:
    """A proper answer is complete HTTP/1.1."""
    head = build_ok(b"12345").build_head(0.02)
    assert head == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDelay: 0.02\r\n\r\n"


def test_a_whole_delay_has_no_fraction() -> None:
    """2 s are told as `2`, none as `0`."""
    answer = build_ok(b"")
    assert b"\r\nDelay: 2\r\n" in answer.build_head(2.0)
    assert b"\r\nDelay: 0\r\n" in answer.build_head(0.0)


def test_a_head_tells_what_comes_of_the_connection() -> None:
    """The header for the connection is one more line of the head."""
    assert build_ok(b"").build_head(0.0, CLOSE).endswith(b"\r\nConnection: close\r\n\r\n")


def test_an_error_has_status_500_and_a_body_of_its_own() -> None:
    """Its body says that it was asked for."""
    answer = build_error()
    assert answer.build_head(0.0).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"--error-rate" in answer.body

from oku_server.http.answer import (
    CLOSE,
    COPY_LIMIT_BYTES,
    Answer,
    build_error,
    build_ok,
    build_refusal,
    build_text,
)


def test_an_answer_has_a_status_a_length_and_a_body() -> None:
    """A proper answer is complete HTTP/1.1, in one piece."""
    assert build_ok(b"12345").build(b"") == (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345",)


def test_more_headers_stand_in_the_head() -> None:
    """Each of them brings the end of its line."""
    (answer,) = build_ok(b"").build(b"Delay: 0\r\n" + CLOSE)
    assert answer.endswith(b"\r\nDelay: 0\r\nConnection: close\r\n\r\n")


def test_a_body_may_be_sent_in_part() -> None:
    """The head announces all of it."""
    assert build_ok(b"12345").build(b"", 2) == (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12",)
    assert build_ok(b"12345").build(b"", 0)[0].endswith(b"Content-Length: 5\r\n\r\n")


def test_a_long_body_is_not_copied() -> None:
    """It is the second buffer, the same object for every connection."""
    body = b"x" * (COPY_LIMIT_BYTES + 1)
    assert build_ok(body).build(b"")[1] is body


def test_an_error_has_status_500_and_a_body_of_its_own() -> None:
    """Its body says that it was asked for."""
    (answer,) = build_error().build(b"")
    assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"--error-rate" in answer


def test_a_type_is_told_where_somebody_may_ask_for_it() -> None:
    """Text says so, proper answers have no type."""
    assert b"\r\nContent-Type: text/plain; charset=utf-8\r\n" in build_text(b"200 OK", b"").build(b"")[0]
    assert b"\r\nContent-Type: a/b\r\n" in Answer(b"200 OK", b"", b"a/b").build(b"")[0]
    assert b"Content-Type" not in build_ok(b"").build(b"")[0]


def test_a_refusal_says_why() -> None:
    """Its body repeats the status for humans, or has the reason."""
    (answer,) = build_refusal(b"400 Bad Request").build(b"")
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.endswith(b"\r\n\r\n400 bad request\n")
    assert build_refusal(b"400 Bad Request", b"no").build(b"")[0].endswith(b"\r\n\r\nno\n")

import pytest

from oku_server.http.response import (
    CLOSE,
    COPY_LIMIT_BYTES,
    KEEP_ALIVE,
    Content,
    Ending,
    build_refusal,
    build_response,
    build_text,
)


def test_a_response_has_a_status_a_length_and_a_body() -> None:
    """The response is complete HTTP/1.1 in one buffer."""
    response = build_response(Content(b"200 OK", b"12345"), connection=b"")
    assert response == (0.0, (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345",), Ending.OPEN)


def test_more_headers_stand_in_the_head() -> None:
    """Each header brings its own line ending."""
    response = build_response(Content(b"200 OK", b""), connection=CLOSE, headers=b"Delay: 0\r\n")
    assert response.buffers[0].endswith(b"\r\nDelay: 0\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize(
    ("connection", "ending"), [(b"", Ending.OPEN), (KEEP_ALIVE, Ending.OPEN), (CLOSE, Ending.CLOSE)]
)
def test_a_response_says_what_happens_to_the_connection(connection: bytes, ending: Ending) -> None:
    """The header and the ending of a response agree."""
    response = build_response(Content(b"200 OK", b"!"), connection=connection)
    assert response.buffers[0].endswith(b"Content-Length: 1\r\n" + connection + b"\r\n!")
    assert response.ending is ending


def test_a_body_may_be_sent_in_part() -> None:
    """The head announces the whole body."""
    content = Content(b"200 OK", b"12345")
    assert build_response(content, connection=b"", sent=2).buffers == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12",
    )
    assert build_response(content, connection=b"", sent=0).buffers[0].endswith(b"Content-Length: 5\r\n\r\n")


def test_a_long_body_is_not_copied() -> None:
    """The body is the second buffer, and every connection gets the same object."""
    body = b"x" * (COPY_LIMIT_BYTES + 1)
    assert build_response(Content(b"200 OK", body), connection=b"").buffers[1] is body


def test_the_type_of_a_body_is_told_where_there_is_one() -> None:
    """Text for people has a type; the body of a proper response has none."""
    contents = (build_text(b"200 OK", b""), Content(b"200 OK", b"", b"a/b"), Content(b"200 OK", b""))
    text, typed, plain = (build_response(content, connection=b"").buffers[0] for content in contents)
    assert b"\r\nContent-Type: text/plain; charset=utf-8\r\n" in text
    assert b"\r\nContent-Type: a/b\r\n" in typed
    assert b"Content-Type" not in plain


def test_a_refusal_says_why() -> None:
    """The body repeats the status for people, or gives the reason."""
    assert build_refusal(b"400 Bad Request") == build_text(b"400 Bad Request", b"400 bad request\n")
    assert build_refusal(b"400 Bad Request", b"no") == build_text(b"400 Bad Request", b"no\n")

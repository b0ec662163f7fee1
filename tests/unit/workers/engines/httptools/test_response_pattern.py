"""What a pattern recognises is what the strict reader would have taken, and made the same of."""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.servers.responses import INVALID, VALID
from tests.kit.workers.extension import require_extension

from oku_core.http_client.response_reader import LONGEST_HEAD_BYTES, MalformedResponseError, ResponseReader
from oku_workers.engines.httptools import body_size
from oku_workers.engines.httptools.response_pattern import ResponsePattern, learn_pattern

HEAD = b"HTTP/1.1 200 OK\r\nServer: s\r\nDate: now\r\nX-Request-Id: %s\r\n"
PLAIN = HEAD % b"a1" + b"Content-Length: 2\r\nConnection: keep-alive\r\n\r\nhi"
CHUNKED = HEAD % b"a1" + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1a\r\n" + b"x" * 26 + b"\r\n0\r\n\r\n"
ANSWERS = [case.content + case.surplus for case in VALID.values() if case.method == "GET"]
ANSWERS += [case.content for case in INVALID.values() if case.method == "GET"]
SOME = 5
"""After so many answers a pattern knows here what they begin with."""
PLACES = ["", "its body", "an id", "a length", "the first header"]
"""Where those may differ that came before."""
after_others = pytest.mark.parametrize("place", PLACES)


@pytest.fixture(autouse=True, scope="module", params=["python", "compiled"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """How patterns measure; in Python they see anew after each answer what those begin with."""
    if request.param == "compiled":
        require_extension()
    build = {"python": body_size.PythonShape, "compiled": body_size.build_compiled_shape}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_size, "build_shape", build[request.param])
        patch.setattr(body_size, "_OFTEN", 1)
        yield request.param


PIECES = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\0",
    b" ",
    b"\t",
    b":",
    b"0",
    b"2",
    b";",
    b"\r\n x",
    b"close",
    b"\xff",
    b"\x01",
    b"A",
]
"""What may change the meaning of an answer wherever it stands."""


def read(answer: bytes) -> tuple[int, int, bytes] | None:
    """Status, size and body by the reader, if it takes all of an answer and may use its connection again."""
    reader = ResponseReader(has_bodies=True)
    reader.kept_bytes = 1 << 20
    reader.reset()
    try:
        reader.feed(answer)
    except MalformedResponseError:
        return None
    return (
        (reader.status, reader.received, bytes(reader.body))
        if reader.is_complete and reader.is_kept
        else None
    )


def recognise(pattern: ResponsePattern, answer: bytes) -> tuple[int, int, bytes] | None:
    """The same by a pattern."""
    if (size := pattern.measure(answer)) < 0:
        return None
    head, body = pattern.take_apart(answer)
    assert answer.startswith(head)
    return pattern.status, size, body


def learn(answer: bytes, before: Sequence[bytes] = ()) -> ResponsePattern:
    """The pattern of an answer that has one, after it has recognised many others."""
    pattern = learn_pattern(answer)
    assert pattern is not None
    if before:
        sizes = {pattern.measure(each) for each in islice(cycle(before), SOME)}
        assert min(sizes) >= 0
    return pattern


def vary(answer: bytes, place: str) -> tuple[bytes, ...]:
    """What came before an answer and was like it, but for one place; nothing if there is no such place."""
    if place == "a length":
        if b"chunked" in answer:
            return answer, answer.replace(b"\r\n2\r\nhi", b"\r\n3\r\nhi!")
        return answer, answer.replace(b"2\r\n", b"3\r\n") + b"!"
    return {
        "": (),
        "its body": (answer, answer.replace(b"hi", b"ho")),
        "an id": (answer, answer.replace(b"a1", b"b22")),
        "the first header": (answer, answer.replace(b": s", b": t")),
    }[place]


@pytest.mark.parametrize(
    "answer",
    [
        HEAD % b"a much longer one" + b"Content-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, World!",
        HEAD % b"" + b"Content-Length: 0\r\nConnection: keep-alive\r\n\r\n",
        PLAIN.replace(b"now", b" \xff\t; , "),
    ],
)
@after_others
def test_an_answer_with_other_values_is_recognised(answer: bytes, place: str) -> None:
    """Its length may be another one, too."""
    pattern = learn(PLAIN, vary(PLAIN, place))
    assert recognise(pattern, answer) == read(answer) != None  # noqa: E711  # both, and something


@pytest.mark.parametrize(
    "body", [b"0\r\n\r\n", b"5\r\n12345\r\n0\r\n\r\n", b"00A\r\n0123456789\r\n00\r\n\r\n"]
)
@after_others
def test_a_chunked_answer_may_come_in_any_number_of_chunks(body: bytes, place: str) -> None:
    """Also in none."""
    answer = HEAD % b"b" + b"Transfer-Encoding: chunked\r\n\r\n" + body
    pattern = learn(CHUNKED, vary(CHUNKED, place))
    assert recognise(pattern, answer) == read(answer) != None  # noqa: E711  # both, and something


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN + b"!",
        PLAIN[:-1],
        PLAIN.replace(b"200 OK", b"500 No"),
        PLAIN.replace(b"keep-alive", b"close"),
        PLAIN.replace(b"Server: s\r\n", b""),
        PLAIN.replace(b"Server: s\r\n", b"Server: s\r\nContent-Length: 2\r\n"),
        PLAIN.replace(b"Server", b"Transfer-Encoding"),
        PLAIN.replace(b": s\r\n", b": s\r\n folded\r\n"),
        PLAIN.replace(b"\r\n", b"\n"),
        PLAIN.replace(b"now", b"n\0w"),
        PLAIN.replace(b"now", b"x" * LONGEST_HEAD_BYTES),
        CHUNKED,
    ],
)
@after_others
def test_an_answer_of_another_shape_is_left_to_the_reader(answer: bytes, place: str) -> None:
    """As is one that is not there as a whole, or has something behind it."""
    assert recognise(learn(PLAIN, vary(PLAIN, place)), answer) is None


@pytest.mark.parametrize(
    "body",
    [
        b"2;a=b\r\nhi\r\n0\r\n\r\n",
        b"2\r\nhi\r\n0\r\nT: x\r\n\r\n",
        b"2\nhi\r\n0\r\n\r\n",
        b"\r\n",
        b"0\r\n\r\n\r\n",
        b"0\r\n\r\n0\r\n\r\n",
    ],
)
@after_others
def test_chunks_with_anything_beside_them_are_left_to_the_reader(body: bytes, place: str) -> None:
    """Extensions and trailers among it."""
    pattern = learn(CHUNKED, vary(CHUNKED, place))
    assert recognise(pattern, HEAD % b"b" + b"Transfer-Encoding: chunked\r\n\r\n" + body) is None


@pytest.mark.parametrize("before", [0, SOME])
def test_nothing_is_recognised_that_the_reader_would_read_otherwise(before: int) -> None:
    """Whichever answer of the table of RFC 9112 the pattern is of, and whichever comes."""
    patterns = [
        (answer, pattern) for answer in ANSWERS if read(answer) and (pattern := learn_pattern(answer))
    ]
    assert len(patterns) > 10
    for answer, pattern in patterns:
        assert recognise(pattern, answer) == read(answer)
        for other in ANSWERS:
            for _ in range(before):
                pattern.measure(answer)
            found = recognise(pattern, other)
            assert found is None or found == read(other), (answer, other)


@given(st.sampled_from([PLAIN, CHUNKED]), st.sampled_from(PLACES), st.data())
def test_whatever_is_changed_in_answers_is_read_alike(answer: bytes, place: str, data: st.DataObject) -> None:
    """Bytes that are put in, taken out or replaced, anywhere and at several places, in answers in a row."""
    pattern = learn(answer, vary(answer, place))
    for _ in range(data.draw(st.integers(1, 4))):
        changed = answer
        for _ in range(data.draw(st.integers(0, 3))):
            start = data.draw(st.integers(0, len(changed)))
            stop = data.draw(st.integers(start, min(start + 3, len(changed))))
            changed = (
                changed[:start] + data.draw(st.sampled_from(PIECES) | st.binary(max_size=2)) + changed[stop:]
            )
        found = recognise(pattern, changed)
        assert found is None or found == read(changed)

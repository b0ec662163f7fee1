import gzip
import zlib

import pytest

from oku_core.accounting.outcome import OK, UNEXPECTED_STATUS
from oku_core.spec.target import Expectation
from oku_core.spec.values.check import ExpectedStatus, JsonValue
from oku_workers.engines.http.answer_checks import (
    CANNOT_UNPACK,
    MOST_CHECKED_BYTES,
    AnswerChecks,
    ReceivedAnswer,
    build_judge,
    showing_answers,
)
from oku_workers.engines.http.pattern_check import CHECK_MATCH

TEXT = b'{"id": 17}'
GZIP, ZLIB = gzip.compress(TEXT, mtime=0), zlib.compress(TEXT)
HEAD = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"
EXPECT = Expectation(body=("id",), json=(JsonValue("/id=17"),))


def find_failed(encoding: str, body: bytes) -> str | None:
    """Why an answer with such a body fails a check of its text and one of its JSON."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
    return AnswerChecks(EXPECT).find_failed(head, body, len(body))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", TEXT), ("deflate", TEXT), ("br", TEXT), ("zstd", TEXT), ("gzip", GZIP[4:])],
)
def test_what_cannot_be_unpacked_fails_its_checks_and_says_so(encoding: str, body: bytes) -> None:
    """Even if the bytes as they were sent have the text in them: whoever reads the answer has not."""
    assert find_failed(encoding, body) == CANNOT_UNPACK


def test_compressed_bodies_are_unpacked_before_they_are_checked() -> None:
    """What is no compression, such as a charset in the wrong place, leaves the body as it is."""
    cases: list[tuple[str, bytes]] = [
        ("gzip", GZIP),
        ("X-GZip", GZIP),
        ("deflate", ZLIB),
        ("deflate", ZLIB[2:-4]),
        ("identity", TEXT),
        ("utf-8", TEXT),
    ]
    for encoding, body in cases:
        assert find_failed(encoding, body) is None
    # A body that no check looks into may be compressed in any way. Its size is that of what was sent.
    checks = AnswerChecks(Expectation())
    assert checks.find_failed(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", b"", 9) is None


def test_patterns_are_looked_for_in_order_in_what_is_read_as_utf_8() -> None:
    """The first one that is not there gives the reason; bytes that are not UTF-8 are characters, too."""
    checks = AnswerChecks(Expectation(match=("name", "^M.ller [^a]$")))
    assert checks.find_failed(HEAD, b"M\xfcller \xff", 9) == CHECK_MATCH
    checks = AnswerChecks(Expectation(match=("M.ller", "^M.ller [^a]$")))
    assert checks.find_failed(HEAD, b"M\xfcller \xff", 9) is None
    assert checks.find_failed(HEAD, "M\N{GREEK SMALL LETTER MU}ller b".encode(), 10) is None
    assert checks.find_failed(HEAD, b"Muller a", 8) == CHECK_MATCH


def test_a_judge_shows_the_answers_that_it_judges_to_who_wants_to_see_them() -> None:
    """It keeps bodies for that, and judges as ever."""
    shown: list[ReceivedAnswer] = []
    with showing_answers(shown.append):
        judge = build_judge(Expectation(status=(ExpectedStatus("200"),)), 10.0)
    assert judge.kept_bytes == MOST_CHECKED_BYTES
    assert judge.judge(200, 2, HEAD, bytearray(b"hi")) == (OK, "")
    assert judge.judge(404, 3, HEAD, b"no!") == (UNEXPECTED_STATUS, "status 404")
    assert shown == [ReceivedAnswer(200, 2, HEAD, b"hi"), ReceivedAnswer(404, 3, HEAD, b"no!")]
    # All other judges show nothing and keep what checks need.
    with showing_answers(lambda _: None):
        pass
    assert build_judge(Expectation(), 10.0).kept_bytes == 0


def test_json_may_begin_with_a_byte_order_mark() -> None:
    """As browsers read it."""
    for encoding in ["identity", "gzip"]:
        body = b"\xef\xbb\xbf" + TEXT
        assert find_failed(encoding, gzip.compress(body, mtime=0) if encoding == "gzip" else body) is None
    cases: list[bytes] = [b"id" + b"[" * 100_000, b'["id"' + b",[" * 300_000, b'"id\xff"', b"\xef\xbb\xbfid"]
    for body in cases:
        # Whatever is no json fails its check. Also what exhausts the stack of the parser; its worker goes on.
        assert find_failed("identity", body) == "check json: not JSON"


def test_deep_values_are_compared_within_the_stack() -> None:
    """That of an answer may be deeper than the one that is wanted, which has a bound."""
    checks = AnswerChecks(Expectation(json=(JsonValue("/a=" + "[" * 100 + "]" * 100),)))
    for levels, failed in ((100, None), (99, "check json /a"), (500, "check json /a")):
        body = b'{"a": %b%b}' % (b"[" * levels, b"]" * levels)
        assert checks.find_failed(HEAD, body, len(body)) == failed

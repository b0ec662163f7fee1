import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.json_reader import (
    DEEPEST,
    MOST_DIGITS,
    JsonDecoder,
    JsonError,
    JsonLimitError,
    JsonTypeError,
    check_depth,
    decode_answer,
    decode_document,
    decode_json,
)


class Named(msgspec.Struct):
    """Something with a name."""

    name: str


WRONG = {
    b"": "is not JSON: Expecting value",
    b"{": "is not JSON: ",
    b"\xff": "is not UTF-8",
    b'{"a": 1, "b": 2, "a": 3}': "a: is given twice",
    b'[{"x": {"\\u001b": 1, "\\u001b": 2}}]': r"'\x1b': is given twice",
    b"NaN": "is not JSON: NaN is not a number",
    b"-Infinity": "is not JSON: -Infinity is not a number",
    b"9" * 5000: "a number has 5000 digits; at most 400 are allowed",
    b"[" * 1_000_000: "is nested too deep",
    b"[" * 101 + b"]" * 101: "is nested too deep",
    b'{"a":' * 101 + b"1" + b"}" * 101: "is nested too deep",
    b"[" + b"[]," * 500 + b"[" * 100 + b"]" * 101: "is nested too deep",
    b"1e999": "1e999 is too large for a number",
    b"-" + b"9" * 5000 + b".0": "'-99999",
    b'{"a":' * 200_000: "is nested too deep",
}


@pytest.mark.parametrize(("content", "message"), WRONG.items(), ids=range(len(WRONG)))
def test_json_that_parsers_disagree_about_is_refused(content: bytes, message: str) -> None:
    """It is refused in one line and without delay."""
    began = time.process_time()
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        decode_json(content)

    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1
    assert time.process_time() - began < 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test_json_that_a_program_writes_is_read(value: object) -> None:
    """The values come back unchanged."""
    assert decode_json(json.dumps(value).encode()) == value


LEVELS = DEEPEST * b"[" + DEEPEST * b"]"


def test_the_limits_may_be_reached_and_not_passed() -> None:
    """A hundred levels, and four hundred digits; brackets in texts are no levels."""
    wide = b"[" + b",".join([LEVELS[1:-1]] * 200) + b"]"
    for content in (LEVELS, wide, b'["' + b"[{" * 1000 + b'"]'):
        assert decode_json(content) == json.loads(content)
        assert decode_document(content) == json.loads(content)
        check_depth(content)
    assert decode_json(b"9" * MOST_DIGITS) == 10**MOST_DIGITS - 1
    # Deep nesting is one error. Whether or not it would exhaust the parser's stack.
    for levels in [DEEPEST + 1, 950, 1_000, 100_000]:
        content = b'{"a": %b%b}' % (b"[" * levels, b"]" * levels)
        for decode in (decode_json, decode_document, check_depth):
            with pytest.raises(JsonLimitError, match=r"^is nested too deep$"):
                decode(content)
    for levels in [900, 1_000, 10_000, 3_000_000]:
        # An exhausted stack is the same error.
        deep = b"[" * levels
        with pytest.raises(JsonError):
            decode_answer(deep)
        with pytest.raises(JsonError):
            JsonDecoder[Named](Named).decode(b'{"name": "x", "more": %b}' % deep)
        with pytest.raises(JsonError):
            list(JsonDecoder[Named](Named).decode_each([b'{"name": "x"}', deep]))


def test_what_programs_write_may_repeat_a_key() -> None:
    """The last one counts, as in browsers."""
    for decode in (decode_document, decode_answer):
        assert decode(b'{"a": 1, "a": 2}') == {"a": 2}
    # A text may begin with a byte order mark. RFC 8259, section 8.1: it need not be an error.
    content = b'\xef\xbb\xbf{"a": "\xc3\xa4"}'
    for decode in (decode_json, decode_document, decode_answer):
        assert decode(content) == {"a": "ä"}
        with pytest.raises(JsonError):
            decode(b"\xef\xbb\xbf" * 2 + b"1")
        with pytest.raises(JsonError):
            decode(b"\xef\xbb\xbf")


def test_the_error_of_a_type_is_told_from_others() -> None:
    """A caller may then say what is missing."""
    decoder = JsonDecoder[Named](Named)
    with pytest.raises(JsonTypeError, match="missing required field `name`"):
        decoder.decode(b"{}")
    for content in (b"", b"{", b'{"name": "\xff"}', b"\xff"):
        with pytest.raises(JsonError) as caught:
            decoder.decode(content)
        assert not isinstance(caught.value, JsonTypeError)


@given(st.binary())
def test_any_bytes_are_read_or_refused_in_a_line(content: bytes) -> None:
    """They never raise anything else."""
    decoders = (decode_json, decode_document, decode_answer, JsonDecoder[Named](Named).decode, check_depth)
    for decode in decoders:
        told = ""
        try:
            decode(content)
        except JsonError as error:
            told = str(error)
        assert len(told.splitlines()) <= 1

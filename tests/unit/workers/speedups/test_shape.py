"""The shape that is compiled measures as that in Python."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.workers.extension import require_extension

from oku_core.http_client.response_reader import LONGEST_HEAD_BYTES
from oku_workers.engines.httptools.body_size import (
    FIXED,
    LENGTH,
    VALUE,
    Line,
    PythonShape,
    build_compiled_shape,
)

STATUS = (FIXED, b"HTTP/1.1 200 OK\r\n")
SHAPES: list[tuple[Line, ...]] = [
    (STATUS, (VALUE, b"A:"), (LENGTH, b"L:"), (FIXED, b"C: c\r\n")),
    (STATUS, (LENGTH, b"L:")),
    (STATUS, (FIXED, b"T: chunked\r\n"), (VALUE, b"A:")),
    (STATUS, (FIXED, b"T: chunked\r\n")),
]
"""With a length, and in chunks."""
VALUES = b"| |\t 1 |x\xff|a\0b|a\rb|a\nb|a\r|\r\n b|a:b".split(b"|")
LENGTHS = b"0| 2|2 \t|02|  |-2|+2|2 2|1234567890|12345678901|2\r|x".split(b"|")
CHUNKS = b"2|hi|0|,0|,A|0123456789|00|,2|hi,2;a|hi|0|,ffffffff|,fffffffff|,0||0|,2|hi0|".split(b",")
BODIES = [b"", b"hi", *(each.replace(b"|", b"\r\n") + b"\r\n" for each in CHUNKS)]


@st.composite
def draw_answers(draw: st.DrawFn, shape: tuple[Line, ...]) -> bytes:
    """Answers of a shape, mostly: with any values, and rarely without a line or a few bytes."""
    kinds = {FIXED: st.just(b""), VALUE: st.sampled_from(VALUES), LENGTH: st.sampled_from(LENGTHS)}
    lines = [text + draw(kinds[kind]) + (b"" if kind == FIXED else b"\r\n") for kind, text in shape]
    if draw(st.integers(0, 9)) == 0:
        del lines[draw(st.integers(0, len(lines) - 1))]
    answer = b"".join(lines) + b"\r\n" + draw(st.sampled_from(BODIES))
    cut = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 9]))
    return answer[: len(answer) - cut]


@pytest.fixture(autouse=True, scope="module")
def extension() -> None:
    """It must be there."""
    require_extension()


@pytest.mark.heavy
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=100)
@given(data=st.data())
def test_an_answer_has_the_same_measure(shape: tuple[Line, ...], data: st.DataObject) -> None:
    """Whatever it consists of, and wherever it is cut off."""
    answer = data.draw(draw_answers(shape))
    in_python = PythonShape(shape, 200).measure(answer)
    assert build_compiled_shape(shape, 200).measure(answer) == in_python


@pytest.mark.parametrize("surplus", [0, 1])
def test_a_head_has_the_same_limit(surplus: int) -> None:
    """The longest that is measured, and one byte more."""
    lines = (STATUS, (VALUE, b"A:"), (LENGTH, b"L:"))
    rest = b"\r\nL: 2\r\n\r\n"
    value = b"v" * (LONGEST_HEAD_BYTES - len(STATUS[1] + b"A:" + rest) + surplus)
    answer = STATUS[1] + b"A:" + value + rest + b"hi"
    expected = -1 if surplus else 2
    for build in (PythonShape, build_compiled_shape):
        assert build(lines, 200).measure(answer) == expected


def test_what_is_no_shape_is_refused() -> None:
    """Nothing of it is kept."""
    cases: list[Any] = [
        ("no line",),
        ((FIXED,),),
        ((FIXED, "text"),),
        ((3, b"kind"),),
        ((-1, b"kind"),),
        ((FIXED, b"", b""),),
    ]
    for lines in cases:
        with pytest.raises((TypeError, ValueError)):
            build_compiled_shape(lines, 200)
    # Only bytes are measured. No other kind of buffer, which could change meanwhile.
    measure = build_compiled_shape([STATUS], 200).measure
    for answer in ("text", bytearray(b"x"), None):
        with pytest.raises(TypeError):
            measure(answer)  # type: ignore[arg-type]

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.load_values import (
    MOST_STAGES,
    Late,
    StageText,
    parse_late,
    parse_stages,
    parse_stop_when_down,
)

MINUTE = Fraction(60)


@pytest.mark.parametrize(
    ("text", "duration_s", "kind", "begin", "end"),
    [
        ("1m:0..5000/s", MINUTE, "rate", 0, 5000),
        ("10m:5000/s", 10 * MINUTE, "rate", None, 5000),
        ("30s:0/s", Fraction(30), "rate", None, 0),
        ("0.3s:8000..8k/s", Fraction(3, 10), "rate", 8000, 8000),
        ("1m:60..120/m", MINUTE, "rate", 1, 2),
        ("1m:60/m..2/s", MINUTE, "rate", 1, 2),
        ("1m:0..200", MINUTE, "in flight", 0, 200),
        ("60:1k", MINUTE, "in flight", None, 1000),
        (" 1m : 0 .. 5000 / s ", MINUTE, "rate", 0, 5000),
    ],
)
def test_a_stage_has_a_length_and_a_line(
    text: str, duration_s: Fraction, kind: str, begin: Fraction | None, end: Fraction
) -> None:
    """Where a ramp begins without a unit, it has that of its end; a bare number of a stage is its end."""
    (stage,) = parse_stages(text)
    assert (stage.duration_s, stage.begin, stage.end) == (duration_s, begin, end)
    assert stage.is_rate == (kind == "rate")
    assert (stage, stage.name) == (text.strip(), "")


def test_a_stage_may_have_a_name() -> None:
    """It stands before the last sign of equality, so that it may have others."""
    for text, name in [("soak=1m:5/s", "soak"), ("Ramp up=1m:5/s", "Ramp up"), ("a=b:c=1m:5/s", "a=b:c")]:
        assert StageText(text).name == name
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": "soak", "for": "10m", "rate": "5000/s"}, "soak=10m:5000/s"),
        ({"for": "1m", "concurrency": "0..200"}, "1m:0..200"),
        ({"rate": 5000, "for": 60}, "60:5000/s"),
        ({"rate": "0..5000", "for": "1m"}, "1m:0..5000/s"),
        ({"concurrency": 200, "for": 1.5}, "1.5:200"),
        ({"name": 7, "concurrency": 200, "for": "1m"}, "7=1m:200"),
    ]
    for mapping, text in cases:
        # A mapping is another way to write a stage.
        assert parse_stages([mapping]) == parse_stages(mapping) == (text,)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "'' is not a stage such as 10m:5000/s, 1m:0..5000/s or 1m:0..200"),
        ("5000/s", "5000/s is not a stage such as 10m:5000/s, 1m:0..5000/s or 1m:0..200"),
        ("1m:\n5/s", r"'1m:\n5/s' is not a stage such as 10m:5000/s, 1m:0..5000/s or 1m:0..200"),
        (":5/s", ":5/s: '' is not a duration such as 10s, 500ms or 2m"),
        ("long:5/s", "long:5/s: long is not a duration such as 10s, 500ms or 2m"),
        ("0s:5/s", "0s:5/s: 0s is not more than 0s"),
        ("-1s:5/s", "-1s:5/s: -1s is not more than 0s"),
        ("1m:", "1m:: '' is not a number such as 50000, 1_000_000, 1e6 or 1M"),
        ("1m:fast", "1m:fast: fast is not a number such as 50000, 1_000_000, 1e6 or 1M"),
        ("1m:5/d", "1m:5/d: 5/d is not a rate such as 5000/s, 300/m or 1.5k/s"),
        ("1m:-5/s", "1m:-5/s: -5/s is not at least 0/s"),
        ("1m:0..2G/s", "1m:0..2G/s: 2G/s is not at most 1_000_000_000/s"),
        ("1m:5/s..7", "1m:5/s..7: 5/s is not a number such as 50000, 1_000_000, 1e6 or 1M"),
        ("1m:1.5", "1m:1.5: 1.5 is not a whole number"),
        ("1m:-1", "1m:-1: -1 is not between 0 and 10_000_000"),
        ("1m:0..1G", "1m:0..1G: 1G is not between 0 and 10_000_000"),
        ("=1m:5", "'' is not a name of 1 to 40 characters"),
        (f"{'x' * 41}=1m:5", f"{'x' * 41} is not a name of 1 to 40 characters"),
        (5, "5 is not text, put it in quotes"),
        (None, "null is not text"),
        ([], "no stage is given"),
        ({}, "{}: a stage has `for`, and either `rate` or `concurrency`"),
        ({"for": "1m"}, "{'for': '1m'}: a stage has `for`, and either `rate` or `concurrency`"),
        ({"rate": 5}, "{'rate': 5}: a stage has `for`, and either `rate` or `concurrency`"),
        (
            {"for": 1, "rate": 5, "concurrency": 5},
            "{'concurrency': 5, 'for': 1, 'rate': 5}: a stage has `for`, and either `rate` or `concurrency`",
        ),
        ({"for": 1, "to": 5}, "{'for': 1, 'to': 5}: to is not one of name, for, rate, concurrency"),
        (
            {"for": 1, "concurrency": "5/s"},
            "{'concurrency': '5/s', 'for': 1}: 5/s is a rate, not a number of requests in flight",
        ),
        ({"for": 1, "rate": [5]}, "[5] is not text"),
        ({"for": 1, "rate": True}, "true is not text, put it in quotes"),
        ({"name": "", "for": 1, "rate": 1}, "'' is not a name of 1 to 40 characters"),
        (["1:1"] * (MOST_STAGES + 1), "101 stages are more than 100"),
    ],
)
def test_a_wrong_stage_is_told_with_its_part(value: object, fault: str) -> None:
    """The error is one line that shows the stage, and what is wrong with which part."""
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_stages(value)


@given(
    st.text("0123456789.kms:=/x ", max_size=12)
    | st.text()
    | st.dictionaries(
        st.sampled_from(["name", "for", "rate", "concurrency"]),
        st.text("0123456789./sm", max_size=6) | st.integers(-1, 100) | st.floats() | st.none() | st.text(),
    )
)
def test_whatever_is_written_gives_a_stage_or_one_line(value: object) -> None:
    """The parser raises only `ValueError`, and a stage that it accepts is read back as the same stage."""
    message = "no error"
    try:
        (stage,) = parse_stages([value])
    except ValueError as error:
        message = str(error)
    else:
        again = StageText(stage)
        assert (again.name, again.duration_s, again.begin, again.end, again.is_rate) == (
            stage.name, stage.duration_s, stage.begin, stage.end, stage.is_rate,
        )  # fmt: skip
        assert stage.duration_s > 0
        assert stage.isprintable()
    assert message.isprintable()


def test_late_is_a_duration_or_never() -> None:
    """With `send` there is no such duration."""
    cases: list[tuple[object, str, float | None]] = [
        ("1s", "1s", 1.0), (" 20ms ", "20ms", 0.02), (2, "2", 2.0), (0.5, "0.5", 0.5),
        ("1ms", "1ms", 0.001), ("1h", "1h", 3600.0), ("send", "send", None), ("Send", "send", None),
    ]  # fmt: skip
    for value, text, duration_s in cases:
        late = parse_late(value)
        assert (late, late.duration_s) == (text, duration_s)
    for value in ["", "0s", "-1s", "2h", "never", "drop", "send 1s"]:
        # Anything else is told with what is allowed. What is late at once could never be sent.
        with pytest.raises(ValueError, match=r" is neither a duration between 1ms and 1h nor send$"):
            parse_late(value)


@given(st.text("0123456789.mshend ") | st.text() | st.floats() | st.integers() | st.none() | st.booleans())
def test_whatever_is_written_is_read_or_answered_in_one_line(value: object) -> None:
    """The parser raises only `ValueError`, and what it accepts is read back as the same."""
    message = "no error"
    try:
        late = parse_late(value)
    except ValueError as error:
        message = str(error)
    else:
        assert Late(late).duration_s == late.duration_s
    assert message.isprintable()


def test_stop_when_down_is_a_duration_or_never() -> None:
    """Never is 0, and so is 0."""
    cases: list[tuple[object, float]] = [
        ("30s", 30.0), ("1s", 1.0), (90, 90.0), ("1h", 3600.0), ("never", 0.0), ("Never", 0.0), (0, 0.0),
        (0.0, 0.0), ("0s", 0.0),
    ]  # fmt: skip
    for value, seconds in cases:
        assert parse_stop_when_down(value) == seconds
    for value in ["500ms", "2h", "-1s", "soon", ""]:
        # Anything else is refused. The line says what is allowed.
        with pytest.raises(ValueError, match="is neither a duration between 1s and 1h nor never"):
            parse_stop_when_down(value)

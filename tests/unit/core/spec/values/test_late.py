import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.late import Late, parse_late


@pytest.mark.parametrize(
    ("value", "text", "duration_s"),
    [
        ("1s", "1s", 1.0),
        (" 20ms ", "20ms", 0.02),
        (2, "2", 2.0),
        (0.5, "0.5", 0.5),
        ("1ms", "1ms", 0.001),
        ("1h", "1h", 3600.0),
        ("send", "send", None),
        ("Send", "send", None),
    ],
)
def test_a_request_is_given_up_after_a_duration_or_never(
    value: object, text: str, duration_s: float | None
) -> None:
    """With `send` there is no such duration."""
    late = parse_late(value)
    assert (late, late.duration_s) == (text, duration_s)


@pytest.mark.parametrize("value", ["", "0s", "-1s", "2h", "never", "drop", "send 1s"])
def test_anything_else_is_told_with_what_is_allowed(value: str) -> None:
    """What is late at once could never be sent."""
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

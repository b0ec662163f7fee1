from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.rate import MOST_PER_SECOND, Rate, parse_rate


@pytest.mark.parametrize(
    ("value", "per_second"),
    [
        ("5000/s", 5000),
        ("300/m", 5),
        ("1.5k/s", 1500),
        ("1_000 / S", 1000),
        ("1e3/s", 1000),
        (" 90/h ", Fraction(1, 40)),
        ("0.1/s", Fraction(1, 10)),
        ("100/m", Fraction(5, 3)),
        ("7", 7),
        (7, 7),
        (0.5, Fraction(1, 2)),
        ("1G/s", MOST_PER_SECOND),
    ],
)
def test_a_rate_is_read_exactly_in_every_usual_form(value: object, per_second: Fraction) -> None:
    """It is per second, minute or hour; a bare number is per second, as with hey and oha."""
    assert parse_rate(value).per_second == per_second


@pytest.mark.parametrize(
    "value",
    ["", "/s", "fast", "5000/", "5000/d", "5/s/s", "5 s", "1/0s", "٣/s", "nan", "5\n/s", True, None, [5], {}],
)
def test_what_is_not_a_rate_is_told_with_examples(value: object) -> None:
    """The error shows the value as it was written."""
    with pytest.raises(ValueError, match=r" is not a rate such as 5000/s, 300/m or 1\.5k/s$"):
        parse_rate(value)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("0/s", "0/s is not more than 0/s"),
        (0, "0 is not more than 0/s"),
        ("-5/m", "-5/m is not at least 0/s"),
        ("1.1G/s", "1.1G/s is not at most 1_000_000_000/s"),
        ("1e400/h", "1e400/h is not at most 1_000_000_000/s"),
    ],
)
def test_a_rate_has_bounds(value: object, fault: str) -> None:
    """A run at no rate would never end, and no clock could tell higher ones apart."""
    with pytest.raises(ValueError, match=f"^{fault}$"):
        parse_rate(value)


def test_a_rate_of_zero_can_be_a_part_of_something_else() -> None:
    """A ramp begins there, or ends there."""
    assert Rate("0/s").per_second == 0


@given(st.text("0123456789.ekM_/smh -") | st.text() | st.floats() | st.integers())
def test_whatever_is_written_gives_a_rate_or_one_line(value: object) -> None:
    """The parser raises only `ValueError`, and a rate that it accepts is read back as the same rate."""
    message = "no error"
    try:
        rate = parse_rate(value)
    except ValueError as error:
        message = str(error)
    else:
        assert 0 < rate.per_second == Rate(rate).per_second <= MOST_PER_SECOND
        assert rate.isprintable()
    assert message.isprintable()

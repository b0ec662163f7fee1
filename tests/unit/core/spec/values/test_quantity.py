import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oku_core.spec.values.quantity import (
    MOST_PER_SECOND,
    Rate,
    find_exact_seconds,
    format_bytes,
    format_duration,
    parse_count,
    parse_duration_s,
    parse_exact_duration,
    parse_number,
    parse_rate,
    parse_size,
)

Parser = Callable[[object], float]
PARSERS: list[Parser] = [parse_count, parse_duration_s, parse_size]


@given(st.integers(min_value=-(10**60), max_value=10**60))
def test_a_count_is_exact_at_any_size(count: int) -> None:
    """As a number, as text or with underscores, it loses no digit to a float."""
    assert parse_count(count) == parse_count(str(count)) == parse_count(f"{count:_}") == count


@given(st.integers(min_value=0, max_value=10**15))
def test_a_count_with_a_decimal_point_is_exact(thousandths: int) -> None:
    """1.001M is exactly 1001000; a rounding error would make it a fraction."""
    assert parse_count(f"{thousandths // 1000}.{thousandths % 1000:03}k") == thousandths


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_duration_survives_being_written(seconds: float) -> None:
    """A float that is written out is read back as the same float."""
    assert parse_duration_s(seconds) == parse_duration_s(repr(seconds)) == seconds


@given(st.integers(0, 30 * 86400 * 10**6))
def test_the_duration_that_was_written_is_found_again(microseconds: int) -> None:
    """0.3 s is three tenths of a second, which no float is; a rate times a time is exact."""
    text = f"{microseconds // 10**6}.{microseconds % 10**6:06}s"
    assert parse_exact_duration(text) == Fraction(microseconds, 10**6)
    assert find_exact_seconds(parse_duration_s(text)) == Fraction(microseconds, 10**6)


def test_a_number_need_not_be_whole() -> None:
    """It is exact in every form of a count; the error says what the caller wants."""
    assert parse_number("1.5", "a weight") == Fraction(3, 2)
    assert parse_number("0.0001k", "a weight") == Fraction(1, 10)
    with pytest.raises(ValueError, match=r"^heavy is not a weight$"):
        parse_number("heavy", "a weight")


def test_a_size_is_read_in_decimal_and_binary_units() -> None:
    """One kB is 1000 bytes, and one KiB is 1024."""
    cases: list[tuple[object, int]] = [
        ("1000", 1000), (0, 0), ("12B", 12), ("4kB", 4000), ("4KiB", 4096), ("1.5k", 1500),
        ("1MiB", 2**20), ("2gb", 2 * 10**9), ("3m", 3 * 10**6), ("3MB", 3 * 10**6), ("3MiB", 3 * 2**20),
        ("3G", 3 * 10**9), ("3GiB", 3 * 2**30),
    ]  # fmt: skip
    for value, size in cases:
        assert parse_size(value) == size
    other_cases: list[object] = [-1, "-1", "-4KiB"]
    for value in other_cases:
        # A size is not negative. No body is shorter than zero bytes.
        with pytest.raises(ValueError, match=f"^{value} is not at least 0$"):
            parse_size(value)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", "''"), ("ten", "ten"), ("1_", "1_"), ("1__0", "1__0"), ("_1", "_1"), (".5", ".5"),
        ("1,000", "1,000"), ("5 parsecs", "5 parsecs"), ("1e", "1e"), ("1e9999", "1e9999"),
        ("1\n0", r"'1\n0'"), ("10\ns", r"'10\ns'"), ("٣", "٣"), ("5\u212a", "5\u212a"), ("nan", "nan"),
        (float("nan"), "nan"), (float("inf"), "inf"), (True, "true"), (None, "null"), ([5], "[5]"),
        ({"s": 5}, "{'s': 5}"),
    ],
)  # fmt: skip
def test_an_invalid_quantity_is_named(parse: Parser, value: object, shown: str) -> None:
    """The error shows the value and an example; digits of other scripts and look-alike units are refused."""
    with pytest.raises(ValueError, match=rf"^{re.escape(shown)} is not a (number|duration|size) such as \S"):
        parse(value)


def test_a_count_is_read_in_every_usual_form() -> None:
    """Digits, underscores, exponents and decimal units give the whole number that they mean."""
    cases: list[tuple[object, int]] = [
        ("50000", 50_000), ("1_000_000", 1_000_000), ("1_0", 10), ("1e6", 1_000_000), ("1E+6", 1_000_000),
        ("2.5e1", 25), ("1M", 1_000_000), ("1.5k", 1500), ("2 G", 2 * 10**9), ("1b", 10**9),
        ("1T", 10**12), (" 7 ", 7), ("+7", 7), ("-7", -7), (7, 7), (7.0, 7), (1e15, 10**15),
        ("1e400", 10**400),
    ]  # fmt: skip
    for value, count in cases:
        assert parse_count(value) == count
    other_cases: list[object] = ["1.5", 1.5, "1e-1", "0.0001k"]
    for value in other_cases:
        # A count is whole. A fraction of a request is not rounded away.
        with pytest.raises(ValueError, match=f"^{value} is not a whole number$"):
            parse_count(value)
    for digits in [401, 5000]:
        # A text of more than 400 digits is not a number.
        assert parse_count("9" * 400) == 10**400 - 1
        with pytest.raises(ValueError, match=r"^'9+\.\.\.9+' is not a number such as 50000"):
            parse_count("9" * digits)


def test_a_duration_is_read_in_every_usual_form() -> None:
    """Every unit gives seconds, a bare number means seconds, and the caller judges the sign."""
    cases: list[tuple[object, float]] = [
        ("10s", 10.0), ("10", 10.0), (10, 10.0), (0.1, 0.1), (" 10 s ", 10.0), ("500ms", 0.5),
        ("3us", 3e-6), ("3µs", 3e-6), ("2m", 120.0), ("1.5H", 5400.0), ("1_000ms", 1.0), ("-5s", -5.0),
    ]  # fmt: skip
    for value, seconds in cases:
        assert parse_duration_s(value) == seconds
    other_cases: list[object] = ["1e400", 10**400, "9" * 399]
    for value in other_cases:
        # A duration beyond every float is refused. A finite text never gives an infinite duration.
        with pytest.raises(ValueError, match="is not a duration such as 10s"):
            parse_duration_s(value)


@pytest.mark.parametrize("parse", PARSERS)
@given(value=st.text(alphabet="0123456789_.eE+-kKmMiBsµ \n٣nainf") | st.floats() | st.text())
def test_whatever_is_written_gives_a_number_or_one_line(parse: Parser, value: object) -> None:
    """The parsers raise only `ValueError`."""
    number, message = 0.0, "no error"
    try:
        number = parse(value)
    except ValueError as error:
        message = str(error)
    assert float("-inf") < number < float("inf")
    assert message.isprintable()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"), (0.85, "850 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (61.2, "61.2 s"),
        (99.94, "99.9 s"), (99.96, "1 min 40 s"), (125, "2 min 05 s"), (3599, "59 min 59 s"),
        (3599.9, "1 h 00 min"), (11_400, "3 h 10 min"), (150_000, "41 h 40 min"),
    ],
)  # fmt: skip
def test_a_duration_is_shown_in_two_units_at_most(seconds: float, text: str) -> None:
    """Each range of durations has its own form, and rounding never gives 1000 ms or 60 s."""
    assert format_duration(seconds) == text


@given(st.floats(min_value=0, max_value=4000) | st.floats(min_value=0, max_value=1e7))
def test_a_shown_duration_is_near_the_true_one(seconds: float) -> None:
    """The displayed duration is correct to the last unit shown."""
    text = format_duration(seconds)
    units = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
    words = text.split()
    shown = sum(float(number) * units[unit] for number, unit in zip(words[0::2], words[1::2], strict=True))
    last_unit = units[words[-1]] if "." not in text else 0.1
    assert abs(shown - seconds) <= last_unit
    assume(len(words) == 4)
    assert int(words[2]) < 60


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (999, "999 B"), (999.7, "1.0 kB"), (1000, "1.0 kB"), (13_000_000, "13.0 MB"),
        (999_940, "999.9 kB"), (999_960, "1.0 MB"), (2.5e9, "2.5 GB"), (1.3e12, "1.3 TB"),
        (5e15, "5000.0 TB"),
    ],
)  # fmt: skip
def test_bytes_are_shown_in_decimal_units(count: float, text: str) -> None:
    """The unit is the largest one that leaves a number of at least 1 after rounding."""
    assert format_bytes(count) == text


def test_a_rate_is_read_exactly_and_has_bounds() -> None:
    """It is per second, minute or hour; a bare number is per second, as with hey and oha."""
    cases: list[tuple[object, Fraction | int]] = [
        ("5000/s", 5000), ("300/m", 5), ("1.5k/s", 1500), ("1_000 / S", 1000), ("1e3/s", 1000),
        (" 90/h ", Fraction(1, 40)), ("0.1/s", Fraction(1, 10)), ("100/m", Fraction(5, 3)), ("7", 7),
        (7, 7), (0.5, Fraction(1, 2)), ("1G/s", MOST_PER_SECOND),
    ]  # fmt: skip
    for value, per_second in cases:
        assert parse_rate(value).per_second == per_second
    other_cases: list[object] = [
        "", "/s", "fast", "5000/", "5000/d", "5/s/s", "5 s", "1/0s", "٣/s", "nan", "5\n/s", True, None,
        [5],
        {},
    ]  # fmt: skip
    for value in other_cases:
        # What is not a rate is told with examples. The error shows the value as it was written.
        with pytest.raises(ValueError, match=r" is not a rate such as 5000/s, 300/m or 1\.5k/s$"):
            parse_rate(value)
    # A rate has bounds. A run at no rate would never end, and no clock could tell higher ones apart.
    more_cases: list[tuple[object, str]] = [
        ("0/s", "0/s is not more than 0/s"),
        (0, "0 is not more than 0/s"),
        ("-5/m", "-5/m is not at least 0/s"),
        ("1.1G/s", "1.1G/s is not at most 1_000_000_000/s"),
        ("1e400/h", "1e400/h is not at most 1_000_000_000/s"),
    ]
    for value, fault in more_cases:
        with pytest.raises(ValueError, match=f"^{fault}$"):
            parse_rate(value)
    # A rate of zero can be a part of something else. A ramp begins there, or ends there.
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

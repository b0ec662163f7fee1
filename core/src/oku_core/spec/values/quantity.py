"""Parses quantities as people write them (`1M`, `10s`, `4KiB`, `5000/s`) into plain numbers.

A rate is a number of requests per second, minute or hour; a bare number is per second.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Self

from oku_core.errors import format_value

_COUNT_UNITS: Mapping[str, int] = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
_DURATION_UNITS: Mapping[str, int | Fraction] = {
    "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "": 1, "s": 1, "m": 60, "h": 3600, "d": 86400,
}  # fmt: skip
_SIZE_UNITS: Mapping[str, int] = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "kib": 2**10,
    "m": 10**6, "mb": 10**6, "mib": 2**20,
    "g": 10**9, "gb": 10**9, "gib": 2**30,
}  # fmt: skip
_QUANTITY = re.compile(r"([-+]?[0-9]++(?:_[0-9]++)*+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?) *([a-zA-Zµ]*)")
_MOST_DIGITS = 400
_DURATION = "a duration such as 10s, 500ms or 2m"


def parse_count(value: object) -> int:
    """Parse a whole number: `1000000`, `1_000_000`, `1e6`, `1M`, `1.5k`."""
    number = _parse(value, _COUNT_UNITS, "a number such as 50000, 1_000_000, 1e6 or 1M")
    if number.denominator != 1:
        raise ValueError(f"{format_value(value)} is not a whole number")
    return number.numerator


def parse_number(value: object, wanted: str) -> Fraction:
    """Parse a number that need not be whole: `0.5`, `1.5k`; the error ends with `wanted`."""
    return _parse(value, _COUNT_UNITS, wanted)


def parse_exact_duration(value: object) -> Fraction:
    """Parse a duration into seconds without rounding, in the forms of `parse_duration_s`."""
    return _parse(value, _DURATION_UNITS, _DURATION)


def parse_duration_s(value: object) -> float:
    """Parse a duration into seconds: `10s`, `500ms`, `2m`, `1h`; a bare number means seconds."""
    try:
        return float(parse_exact_duration(value))
    except OverflowError:
        raise ValueError(f"{format_value(value)} is not {_DURATION}") from None


def find_exact_seconds(seconds: float) -> Fraction:
    """The seconds that a user wrote, exactly, from what `parse_duration_s` has rounded: 0.3 is 3/10."""
    return Fraction(repr(seconds))


def parse_size(value: object) -> int:
    """Parse a size of at least 0 into bytes: `1000`, `4kB`, `4KiB`, `1MiB`."""
    size = round(_parse(value, _SIZE_UNITS, "a size such as 1000, 4kB or 1MiB"))
    if size < 0:
        raise ValueError(f"{format_value(value)} is not at least 0")
    return size


def parse_duration_between(value: object, least: str, most: str) -> float:
    """Parse a duration into seconds; it must lie within bounds, which are durations as text."""
    seconds = parse_duration_s(value)
    if not parse_duration_s(least) <= seconds <= parse_duration_s(most):
        raise ValueError(f"{format_value(value)} is not between {least} and {most}")
    return seconds


def format_duration(seconds: float) -> str:
    """Format a duration for people, in at most two units: `850 ms`, `61.2 s`, `2 min 05 s`, `3 h 10 min`."""
    # From each bound on, this form would round up to a number that belongs to the next form.
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_bytes(count: float) -> str:
    """Format a number of bytes for people, in decimal units: `13.0 MB`."""
    if count < 999.5:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def _parse(value: object, units: Mapping[str, int | Fraction] | Mapping[str, int], wanted: str) -> Fraction:
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    match = _QUANTITY.fullmatch(str(value).strip()) if isinstance(value, float | str) else None
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None or len(match[1]) > _MOST_DIGITS:
        raise ValueError(f"{format_value(value)} is not {wanted}")
    # A float would not be exact: 1.001M must give 1001000, and 2**53 + 1 must not be rounded.
    return Fraction(match[1]) * unit


MOST_PER_SECOND = 10**9
"""The highest rate that a user can ask for, in requests per second."""
PERIODS_S = {"s": 1, "m": 60, "h": 3600}
"""The lengths of the periods that a rate may be given for, in seconds."""

_FORMS = "a rate such as 5000/s, 300/m or 1.5k/s"


class Rate(str):
    """A rate of requests; as a string, it is the text that the user wrote.

    Attributes:
        per_second: requests per second, exactly.
    """

    __slots__ = ("per_second",)
    per_second: Fraction

    def __new__(cls, text: str) -> Self:
        """Parse a rate from 0 to `MOST_PER_SECOND`; raise `ValueError` for anything else."""
        rate = super().__new__(cls, text)
        rate.per_second = _parse_rate(text)
        if rate.per_second < 0:
            raise ValueError(f"{format_value(text)} is not at least 0/s")
        if rate.per_second > MOST_PER_SECOND:
            raise ValueError(f"{format_value(text)} is not at most {MOST_PER_SECOND:_}/s")
        return rate


def parse_rate(value: object) -> Rate:
    """Parse a rate above 0.

    Raises:
        ValueError: the value has none of the forms, or is out of bounds. The message shows the value and the
            allowed forms.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{format_value(value)} is not {_FORMS}")  # noqa: TRY004  # the input is wrong, not the call
    rate = Rate(str(value).strip())
    if not rate.per_second:
        raise ValueError(f"{format_value(value)} is not more than 0/s")
    return rate


def _parse_rate(text: str) -> Fraction:
    number, slash, period = text.partition("/")
    length_s = PERIODS_S.get(period.strip().lower()) if slash else 1
    if length_s is None or not text.isprintable():
        raise ValueError(f"{format_value(text)} is not {_FORMS}")
    try:
        return parse_number(number, _FORMS) / length_s
    except ValueError:
        raise ValueError(f"{format_value(text)} is not {_FORMS}") from None

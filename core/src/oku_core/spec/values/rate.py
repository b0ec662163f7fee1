"""Rates of requests as users write them: `5000/s`, `300/m`, `1.5k/s`, `20/h`; a bare number is per second."""

from fractions import Fraction
from typing import Self

from oku_core.errors import format_value
from oku_core.spec.values.quantity import parse_number

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
        rate.per_second = _parse(text)
        if rate.per_second < 0:
            raise ValueError(f"{format_value(text)} is not at least 0/s")
        if rate.per_second > MOST_PER_SECOND:
            raise ValueError(f"{format_value(text)} is not at most {MOST_PER_SECOND:_}/s")
        return rate


def parse_rate(value: object) -> Rate:
    """Parse a rate above 0.

    Raises:
        ValueError: the value has none of the forms, or is out of bounds. The message shows the value and what
            is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{format_value(value)} is not {_FORMS}")  # noqa: TRY004  # the input is wrong, not the call
    rate = Rate(str(value).strip())
    if not rate.per_second:
        raise ValueError(f"{format_value(value)} is not more than 0/s")
    return rate


def _parse(text: str) -> Fraction:
    number, slash, period = text.partition("/")
    length_s = PERIODS_S.get(period.strip().lower()) if slash else 1
    if length_s is None or not text.isprintable():
        raise ValueError(f"{format_value(text)} is not {_FORMS}")
    try:
        return parse_number(number, _FORMS) / length_s
    except ValueError:
        raise ValueError(f"{format_value(text)} is not {_FORMS}") from None

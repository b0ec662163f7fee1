"""What becomes of a request that can't be sent when it is due: it is given up, or sent late."""

from typing import Self

from oku_core.errors import format_value
from oku_core.spec.values.quantity import parse_duration_between
from oku_core.spec.values.scalar import parse_scalar

SEND = "send"
"""Says that every request is sent, however late."""

_LEAST, _MOST = "1ms", "1h"


class Late(str):
    """How late a request may be sent; as a string, it is the text that the user wrote.

    Attributes:
        duration_s: how many seconds after its due time a request is given up; None if it is sent in any case.
    """

    __slots__ = ("duration_s",)
    duration_s: float | None

    def __new__(cls, text: str) -> Self:
        """Parse a duration between 1 ms and 1 h, or `send`; raise `ValueError` for anything else."""
        late = super().__new__(cls, text)
        try:
            late.duration_s = None if text == SEND else parse_duration_between(text, _LEAST, _MOST)
        except ValueError:
            raise ValueError(
                f"{format_value(text)} is neither a duration between {_LEAST} and {_MOST} nor {SEND}"
            ) from None
        return late


def parse_late(value: object) -> Late:
    """Parse a duration such as `1s`, or `send`."""
    text = parse_scalar(value).strip()
    return Late(SEND if text.lower() == SEND else text)

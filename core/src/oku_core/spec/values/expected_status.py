"""The statuses that a run expects, as users write them: a code such as `200`, or a class such as `2xx`."""

import re
from collections.abc import Iterable
from typing import Self

from oku_core.errors import format_value
from oku_core.spec.values.scalar import list_values, parse_scalar

_STATUS = re.compile(r"[1-5](xx|[0-9][0-9])")


class ExpectedStatus(str):
    """A status code or a class of them; as a string, it is the text that the user wrote.

    Attributes:
        codes: the status codes that the text stands for.
    """

    __slots__ = ("codes",)
    codes: range

    def __new__(cls, text: str) -> Self:
        """Parse `200` or `2xx`; raise `ValueError` for anything else."""
        if not _STATUS.fullmatch(text):
            raise ValueError(f"{format_value(text)} is not a status such as 200 or 2xx")
        status = super().__new__(cls, text)
        status.codes = (
            range(int(text[0]) * 100, int(text[0]) * 100 + 100)
            if text.endswith("xx")
            else range(int(text), int(text) + 1)
        )
        return status


def parse_expect_status(value: object) -> tuple[ExpectedStatus, ...]:
    """Parse status codes and classes, given as a list or separated by commas: `200,404`, `2xx`."""
    texts = [parse_scalar(item) for item in list_values(value)]
    statuses = tuple(ExpectedStatus(part.strip().lower()) for text in texts for part in text.split(","))
    if not statuses:
        raise ValueError("no status is given")
    return statuses


def list_codes(statuses: Iterable[ExpectedStatus]) -> frozenset[int]:
    """The status codes that count as `ok`."""
    return frozenset(code for status in statuses for code in status.codes)

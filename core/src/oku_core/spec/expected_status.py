"""The statuses that a run expects, as users write them: `200`, or `2xx` for a hundred of them."""

import re
from collections.abc import Iterable
from typing import Self

from oku_core.errors import format_value
from oku_core.spec.scalar import list_values, parse_scalar

_STATUS = re.compile(r"[1-5](xx|[0-9][0-9])")


class ExpectedStatus(str):
    """A status, or a hundred of them, as it was written.

    Attributes:
        codes: the status codes that it stands for.
    """

    __slots__ = ("codes",)
    codes: range

    def __new__(cls, text: str) -> Self:
        """Read `200` or `2xx`; `ValueError` for anything else."""
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
    """Statuses and hundreds of statuses, in a list or separated by commas: `200,404`, `2xx`."""
    texts = [parse_scalar(item) for item in list_values(value)]
    statuses = tuple(ExpectedStatus(part.strip().lower()) for text in texts for part in text.split(","))
    if not statuses:
        raise ValueError("no status is given")
    return statuses


def list_codes(statuses: Iterable[ExpectedStatus]) -> frozenset[int]:
    """The status codes that count as `ok`."""
    return frozenset(code for status in statuses for code in status.codes)

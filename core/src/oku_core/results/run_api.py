"""Types of the API beside summaries: references to runs, and the data of a run.

A reference to a run is, in this order, an id, `latest`, a name, or a part of an id. The key of a
submission submits the same run once, however often it is sent. It is in the header `Idempotency-Key`
(draft-ietf-httpapi-idempotency-key-header), in quotes or without them, and in `--once KEY` of `oku run`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from oku_core.accounting.outcome import OTHER, Outcome
from oku_core.accounting.run_state import RunState
from oku_core.errors import format_value

MOST_ROWS = 1_000
"""How many rows of data one answer has at most."""
LATEST = "latest"
"""Stands for the run that was submitted last."""


def check_reference(reference: str) -> None:
    """Raise `ValueError` if a text can stand for no run: every id has the empty text as a part."""
    if not reference.strip():
        raise ValueError(f"is empty; give {LATEST}, an id, a name, or a part of an id")
    if not reference.isprintable():
        raise ValueError(f"{format_value(reference)} is not printable text")


IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255
_EXCLUDED = frozenset('"\\,')
"""Would have to be escaped in the header, or divides two keys."""


def check_idempotency_key(key: str) -> str:
    """Return a key that can be used; `ValueError` explains what a key may be."""
    if not 0 < len(key) <= LONGEST_KEY or not all(map(_is_allowed, key)):
        raise ValueError(
            f"{format_value(key)} is not a key of 1 to {LONGEST_KEY} printable ASCII characters,"
            " without spaces, commas, double quotes or backslashes"
        )
    return key


def quote_idempotency_key(key: str) -> str:
    """Write a key as the value of the header: a String of RFC 9651."""
    return f'"{key}"'


def read_idempotency_key(value: str) -> str:
    """Read the value of the header; `ValueError` explains what a key may be."""
    written = value.strip()
    is_quoted = len(written) > 1 and written.startswith('"') and written.endswith('"')
    return check_idempotency_key(written[1:-1] if is_quoted else written)


class FailedRange(msgspec.Struct, frozen=True, kw_only=True):
    """The indices `start <= i < stop`, which all have one outcome, one target and one reason.

    `target` is empty if the spec names none. It is also empty for requests that the coordinator has accounted
    for by itself, as not dealt or lost: these may be of several targets, which follow from their indices.

    `reason` is why they failed, as in `failures` of the summary; `other` if that is not kept.
    `status` is the status of their responses, if that is why they failed.
    """

    start: int
    stop: int
    outcome: Outcome
    target: str = ""
    reason: str = OTHER
    status: int | None = None


class FailuresHead(msgspec.Struct, frozen=True, kw_only=True):
    """The head of the list of failed requests of a run.

    `requests` is how many of its requests are accounted and not ok. `unlisted` of them are in no range,
    because there were too many, or they were only counted.
    """

    run: str
    state: RunState
    requests: int
    unlisted: int
    spec: dict[str, Any]


class RunRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the indices from `start` on.

    Attributes:
        run: its id.
        start: the index of the first row.
        rows: one for each index: its values by their columns, as in the file. Long rows are fewer than asked
            for, but at least one; the next request begins behind them.
    """

    run: str
    start: int
    rows: list[Mapping[str, str]]


class RunPeriod(msgspec.Struct, frozen=True):
    """A time in which a run was active; before the next one, its clock stood still.

    Attributes:
        starts_at: the Unix time at which it starts.
        offset_s: the time of the run's clock then. It may be less than at the end of the period before:
            requests that were in flight then are due again.
        stop_s: its time at the end; None while that is not known.
    """

    starts_at: float
    offset_s: float
    stop_s: float | None = None


def _is_allowed(character: str) -> bool:
    return "!" <= character <= "~" and character not in _EXCLUDED

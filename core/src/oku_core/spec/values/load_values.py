"""Parses the keys of a spec that shape its load: stages, late requests, and when a run gives up on a target.

| text | stage |
| --- | --- |
| `10m:5000/s` | 10 minutes, in which the rate goes from where the last stage ended to 5,000 per second |
| `1m:0..5000/s` | a minute in which it goes from 0 to 5,000 per second |
| `30s:8000..8000/s` | half a minute of 8,000 per second, after any other stage |
| `1m:0..200` | a minute in which the requests in flight go from 0 to 200 |
| `soak=10m:5000/s` | a stage that is called soak |

Ramps are linear. In a file, a stage may also be a mapping such as `{name: soak, for: 10m, rate: 5000/s}` or
`{for: 1m, concurrency: 0..200}`.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Self

from oku_core.errors import format_value
from oku_core.spec.values.quantity import (
    Rate,
    parse_count,
    parse_duration_between,
    parse_duration_s,
    parse_exact_duration,
)
from oku_core.spec.values.scalar import list_given, parse_scalar, parse_text

LONGEST_STAGE_NAME = 40
"""In characters."""
MOST_STAGES = 100
"""How many stages a run may have; each of them has an account of its own."""
MOST_IN_FLIGHT = 10_000_000
"""The most requests in flight, over all workers, that a stage may ask for."""

_FORMS = "a stage such as 10m:5000/s, 1m:0..5000/s or 1m:0..200"
_KEYS = ("name", "for", "rate", "concurrency")


class StageText(str):
    """A stage; as a string, it is the text that the user wrote.

    Attributes:
        name: what the user calls it; empty without a name.
        duration_s: how many seconds it lasts, exactly.
        is_rate: whether it has a rate, rather than a number of requests in flight.
        begin: the requests per second, or the requests in flight, that it begins with; None if these are the
            ones that the stage before it ended with, or `end` if it is the first.
        end: those that it ends with.
    """

    __slots__ = ("begin", "duration_s", "end", "is_rate", "name")
    name: str
    duration_s: Fraction
    is_rate: bool
    begin: Fraction | None
    end: Fraction

    def __new__(cls, text: str) -> Self:
        """Parse one of the forms above, except a mapping; raise `ValueError` for anything else."""
        stage = super().__new__(cls, text)
        stage.name, equals, rest = text.rpartition("=")
        duration, colon, levels = rest.partition(":")
        if not colon or not text.isprintable():
            raise ValueError(f"{format_value(text)} is not {_FORMS}")
        if equals and not 0 < len(stage.name.strip()) == len(stage.name) <= LONGEST_STAGE_NAME:
            wanted = f"a name of 1 to {LONGEST_STAGE_NAME} characters"
            raise ValueError(f"{format_value(stage.name)} is not {wanted}")
        try:
            stage.duration_s = parse_exact_duration(duration)
            stage.is_rate, stage.begin, stage.end = _parse_levels(levels)
        except ValueError as error:
            raise ValueError(f"{format_value(text)}: {error}") from None
        if stage.duration_s <= 0:
            raise ValueError(f"{format_value(text)}: {format_value(duration)} is not more than 0s")
        return stage


def parse_stages(value: object) -> tuple[StageText, ...]:
    """Parse one stage or a list of them; each is text, or a mapping such as a file may have."""
    items = list_given(value, "stage")
    if len(items) > MOST_STAGES:
        raise ValueError(f"{len(items)} stages are more than {MOST_STAGES}")
    return tuple(
        StageText(_join(item) if isinstance(item, Mapping) else parse_text(item).strip()) for item in items
    )


def _parse_levels(text: str) -> tuple[bool, Fraction | None, Fraction]:
    first, dots, last = text.partition("..")
    low, high = (first, last) if dots else (None, first)
    number, slash, period = high.partition("/")
    if not slash:
        return False, None if low is None else _parse_in_flight(low), _parse_in_flight(number)
    if low is not None and "/" not in low:
        low += f"/{period}"
    return True, None if low is None else Rate(low).per_second, Rate(high).per_second


def _parse_in_flight(text: str) -> Fraction:
    count = parse_count(text)
    if not 0 <= count <= MOST_IN_FLIGHT:
        raise ValueError(f"{format_value(text)} is not between 0 and {MOST_IN_FLIGHT:_}")
    return Fraction(count)


def _join(mapping: Mapping[object, object]) -> str:
    """Write the mapping of a file as the text that means the same."""
    shown = format_value(dict(mapping))
    if unknown := [key for key in mapping if key not in _KEYS]:
        raise ValueError(f"{shown}: {format_value(unknown[0])} is not one of {', '.join(_KEYS)}")
    if "for" not in mapping or ("rate" in mapping) == ("concurrency" in mapping):
        raise ValueError(f"{shown}: a stage has `for`, and either `rate` or `concurrency`")
    name = f"{parse_scalar(mapping['name'])}=" if "name" in mapping else ""
    duration = parse_scalar(mapping["for"])
    levels = parse_scalar(mapping["rate"] if "rate" in mapping else mapping["concurrency"])
    if "rate" in mapping and "/" not in levels:
        levels += "/s"
    elif "concurrency" in mapping and "/" in levels:
        raise ValueError(f"{shown}: {format_value(levels)} is a rate, not a number of requests in flight")
    return f"{name}{duration}:{levels}"


SEND = "send"
"""The word for sending every request, however late."""

_SOONEST, _LATEST = "1ms", "1h"


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
            late.duration_s = None if text == SEND else parse_duration_between(text, _SOONEST, _LATEST)
        except ValueError:
            raise ValueError(
                f"{format_value(text)} is neither a duration between {_SOONEST} and {_LATEST} nor {SEND}"
            ) from None
        return late


def parse_late(value: object) -> Late:
    """Parse a duration such as `1s`, or `send`."""
    text = parse_scalar(value).strip()
    return Late(SEND if text.lower() == SEND else text)


NEVER = "never"
"""The word for never giving up a run in which nothing is ok."""

_SHORTEST_DOWN, _LONGEST_DOWN = "1s", "1h"


def parse_stop_when_down(value: object) -> float:
    """Parse a duration between 1 s and 1 h, in seconds; `never` is 0, as is 0 itself."""
    text = parse_scalar(value).strip()
    if text.lower() == NEVER:
        return 0.0
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        seconds = -1.0
    if seconds == 0 or parse_duration_s(_SHORTEST_DOWN) <= seconds <= parse_duration_s(_LONGEST_DOWN):
        return seconds
    raise ValueError(
        f"{format_value(text)} is neither a duration between {_SHORTEST_DOWN} and {_LONGEST_DOWN} nor {NEVER}"
    )

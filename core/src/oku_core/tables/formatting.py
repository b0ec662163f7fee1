"""Formats counts, rates, shares, latencies and times for people.

Rounding never makes a bad number look good: anything less than all is never shown as 100 %, and anything
more than nothing is never shown as 0 %.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from oku_core.accounting.outcome import NotSentCause, Outcome
from oku_core.spec.spec import OPEN_END
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.summary import Unit

LONGEST_LEFT_S = 99 * 3600
NOTHING = "-"
"""Shown where there is no number."""
_OF_ITERATIONS = (
    ("Requests sent but not yet answered", "Iterations under way"),
    ("requests without a complete response", "iterations that raised or took too long"),
    ("answered requests", "finished iterations"),
    ("request", "iteration"),
    ("Request", "Iteration"),
    ("iteration space", "request space"),  # the same word for indices of all kinds
)
"""Words for requests, and for iterations."""


def in_units(text: str, unit: Unit) -> str:
    """A text of Oku's own about requests as one about what a run counts: `3 requests` or `3 iterations`."""
    if unit is Unit.ITERATION:
        for of_requests, of_iterations in _OF_ITERATIONS:
            text = text.replace(of_requests, of_iterations)
    return text


def format_count(count: int) -> str:
    """Format a count: `1,000,000`."""
    return f"{count:,}"


def format_rate(rate_rps: float) -> str:
    """Format a rate: `16,340/s`, with one decimal below ten."""
    return f"{rate_rps:,.1f}/s" if 0 < rate_rps < 9.95 else f"{rate_rps:,.0f}/s"


def format_requests(requests: int) -> str:
    """Format how many requests a run has: `1,000,000`, or `open-ended` until its time is over."""
    return "open-ended" if requests >= OPEN_END else format_count(requests)


def format_progress(done: int, whole: int) -> str:
    """Format the progress as a percentage, rounded down: `41.2 %`."""
    tenths = done * 1000 // whole if whole else 0
    return f"{tenths // 10}.{tenths % 10} %"


def format_share(part: float, whole: float) -> str:
    """Format a part of a whole as a percentage: `12.35 %`, `< 0.01 %`, `> 99.99 %`."""
    if part <= 0 or whole <= 0:
        return "0 %"
    if part >= whole:
        return "100 %"
    percent = 100 * part / whole
    if percent < 0.01:
        return "< 0.01 %"
    return "> 99.99 %" if percent > 99.99 else f"{percent:.2f} %"


def format_ok(ok: int, ended: int) -> str:
    """Format how many of the requests that have ended were ok: `> 99.99 % ok`; empty while none has ended."""
    return f"{format_share(ok, ended)} ok" if ended else ""


def format_outcome(outcome: Outcome | NotSentCause) -> str:
    """Format an outcome, or the cause of one: `connect error`, `in flight cap`."""
    return outcome.replace("_", " ")


def format_latency(latency_ms: float | None, digits: int = 3) -> str:
    """Format a latency in the unit that reads best: `874 µs`, `1.70 ms`, `61.2 s`."""
    if latency_ms is None:
        return NOTHING
    for unit, size_ms in (("µs", 0.001), ("ms", 1.0)):
        number = _format_digits(latency_ms / size_ms, digits)
        if number is not None:
            return f"{number} {unit}"
    return f"{_format_digits(latency_ms / 1000, digits) or f'{latency_ms / 1000:,.0f}'} s"


def format_interval(interval_ms: tuple[float, float] | None, digits: int = 3) -> str:
    """Format an interval of latencies: `19.8-20.6 ms`, `985 µs-1.02 ms`; empty if there is none."""
    if interval_ms is None:
        return ""
    low, high = (format_latency(end_ms, digits) for end_ms in interval_ms)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low}-{high}"


def format_change(share: float | None) -> str:
    """Format a change as a percentage with its sign: `+12 %`, `-0.4 %`, `0 %`; one decimal below ten."""
    if share is None:
        return NOTHING
    percent = 100 * share
    text = f"{percent:+,.1f}" if abs(percent) < 9.95 else f"{percent:+,.0f}"
    return "0 %" if float(text.replace(",", "")) == 0 else f"{text} %"


def choose_digits(latencies_ms: Sequence[float | None]) -> int:
    """Return 3 digits, or 4, the most that are known, if 3 would make different latencies look the same."""
    labels = {format_latency(latency_ms) for latency_ms in latencies_ms}
    return 3 if len(labels) == len(set(latencies_ms)) else 4


def format_elapsed(seconds: float) -> str:
    """Format the time elapsed in whole seconds: `25 s`, `2 min 05 s`, `3 h 10 min`."""
    whole = int(seconds)
    return f"{whole} s" if whole < 100 else format_duration(whole)


def format_left(seconds: float | None) -> str:
    """Format an estimated time left, no finer than the estimate: `36 s`, `12 min 40 s`, `3 h 10 min`.

    More than four days cannot be estimated: `over 99 h`.
    """
    if seconds is None:
        return NOTHING
    if seconds > LONGEST_LEFT_S:
        return f"over {LONGEST_LEFT_S // 3600} h"
    return f"{round(seconds)} s" if seconds < 99.5 else format_duration(round(seconds, -1))


def format_clock(at: float) -> str:
    """Format a Unix time as the local time of day: `17:05:12`."""
    return f"{datetime.fromtimestamp(at, tz=UTC).astimezone():%H:%M:%S}"


def format_date_time(at: float) -> str:
    """Format a Unix time as the local date and time: `2026-02-01 17:05:12`."""
    return f"{datetime.fromtimestamp(at, tz=UTC).astimezone():%Y-%m-%d %H:%M:%S}"


def format_date_minute(at: float) -> str:
    """Format a Unix time as the local date and time to the minute: `2026-02-01 17:05`."""
    return format_date_time(at)[: -len(":00")]


def format_since(seconds: float) -> str:
    """Format a time since the start in a few characters: `40 s`, `2:30 min`, `15 min`, `1 h`, `2 h 30`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    if minutes == 0:
        return f"{rest} s"
    if hours == 0:
        return f"{minutes}:{rest:02d} min" if rest else f"{minutes} min"
    seconds_left = f":{rest:02d}" if rest else ""
    return f"{hours} h {minutes_left:02d}{seconds_left}" if minutes_left or rest else f"{hours} h"


def format_compact(number: float) -> str:
    """Format a number in a few characters: `950`, `12k`, `1.5M`."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


def _format_digits(number: float, digits: int) -> str | None:
    """Format with `digits` significant digits; None if the number has more than three before the point."""
    for decimals in range(digits - 1, digits - 4, -1):
        text = f"{number:.{decimals}f}"
        if len(text.partition(".")[0]) + decimals <= digits:
            return text
    return None

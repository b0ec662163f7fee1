"""Finds differences between the specs of two runs, and obstacles to judging them by their latencies.

Differences are shown key by key, without possible secrets; an obstacle takes one line.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from oku_cli.comparison.run_seconds import RunSeconds
from oku_core.accounting.outcome import count_answered, count_sent
from oku_core.accounting.run_state import REST_STATES
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag
from oku_core.tables.formatting import format_share

_DIGEST = re.compile(r"(@sha256:[0-9a-f]{12})[0-9a-f]{52}")


Mask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
SIDES = ("A", "B")
_HARMLESS_KEYS = frozenset({
    "name", "requests", "duration", "seed", "workers", "servers", "start-within", "give-up-after", "grace",
    "range-size", "thresholds", "stop-when-down", "cacert", "cert", "key",
})  # fmt: skip
"""Keys about the length of a run, its distribution and its output, which do not affect a single request."""
_SPOILERS = (Flag.UNBALANCED, Flag.WORKER_SATURATED, Flag.LOOP_LAG)
_MOST_NOT_OK = 0.01
"""The largest difference of the shares that are ok: other answers take another time."""
_MOST_UNANSWERED = 0.01
"""The largest share of sent requests that may lack an answer, and so a latency."""


class SpecDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A key with different values; None where a spec does not have it. Both may look alike, if masked."""

    key: str
    a: Any
    b: Any


def list_differences(first: Mapping[str, Any], second: Mapping[str, Any], mask: Mask) -> list[SpecDifference]:
    """List the keys whose values differ, as users write them, in the order of the first spec."""
    shown_first, shown_second = mask(first), mask(second)
    return [
        SpecDifference(key=key, a=shown_first.get(key), b=shown_second.get(key))
        for key in {**first, **second}
        if first.get(key) != second.get(key)
    ]


def describe_value(value: Any) -> str:
    """A value of a spec in one line, as it may be written in a spec: `[http://a/, http://b/]`."""
    if value is None:
        return "-"
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _DIGEST.sub(r"\1…", text)


def list_obstacles(
    first: RunSeconds, second: RunSeconds, differences: Sequence[SpecDifference], despite: Collection[str]
) -> Iterator[str]:
    """List the obstacles, apart from the keys of a spec in `despite`."""
    if first.summary.run == second.summary.run:
        yield "A and B are the same run"
    keys = [each.key for each in differences if each.key not in _HARMLESS_KEYS | set(despite)]
    if keys:
        flags = " ".join(f"--despite {key}" for key in keys)
        yield f"their specs differ in {', '.join(keys)}; to judge them all the same: {flags}"
    for side, run in zip(SIDES, (first, second), strict=True):
        yield from (f"{side} {fault}" for fault in _list_faults(run))
    yield from _compare_answers(first.summary, second.summary)


def _list_faults(run: RunSeconds) -> Iterator[str]:
    """List the faults of one run, as sentences without their subject."""
    summary = run.summary
    if summary.state not in REST_STATES:
        yield f"is {summary.state}"
    for validity in summary.validity:
        if validity.flag in _SPOILERS:
            yield f"has the flag {validity.flag}: {validity.detail}"
    if not run.distributions:
        yield "has no answers"
        return
    outcomes = msgspec.structs.astuple(summary.outcomes)
    sent = count_sent(outcomes)
    if (missing := sent - count_answered(outcomes)) > _MOST_UNANSWERED * sent:
        yield f"has no answer, and so no latency, for {format_share(missing, sent)} of what it sent"
    if (unsent := summary.accounted - sent) > _MOST_UNANSWERED * summary.accounted:
        yield f"did not send, or lost, {format_share(unsent, summary.accounted)} of its requests"
    try:
        run.measure_spreads()
    except ValueError as error:
        yield str(error)


def _compare_answers(first: Summary, second: Summary) -> Iterator[str]:
    shares = [each.outcomes.ok / each.accounted if each.accounted else 0.0 for each in (first, second)]
    if abs(shares[0] - shares[1]) > _MOST_NOT_OK:
        texts = [format_share(each.outcomes.ok, each.accounted) for each in (first, second)]
        yield f"{texts[0]} of A and {texts[1]} of B are ok: their answers are not the same"

"""Says what to write instead of a `LoadTestShape`: the stages of a run.

The load of a run is its coordinator's: it shares users out over all workers, and takes those of a lost worker
to others. A shape that looks at nothing but the time is as good as its stages, so it is asked for them.
"""

import math
from typing import Any

from locust import LoadTestShape

from oku_core.messaging.checkpoint import LONGEST_REFUSAL

_LONGEST_S = 24 * 3600
_MOST_STAGES = 50


def refuse_shape(kind: type[LoadTestShape], file: str) -> str:
    """One line for the author of a file that has a shape; all stages are in it, or none."""
    said = f"{file}: the load is not shaped by LoadTestShape ({kind.__name__}) but by --stage"
    stages = find_stages(kind)
    if stages is not None:
        text = f"{said}; here: {' '.join(f'--stage {stage}' for stage in stages)}"
        if len(text) <= LONGEST_REFUSAL:
            return text
    return f"{said}, such as --stage 1m:0..50 --stage 10m:50; with a --stage the class is left alone"


def find_stages(kind: type[LoadTestShape]) -> list[str] | None:
    """The stages of a shape that looks at nothing but the time; None of one that does, or has many."""
    try:
        clock: Any = kind()
    except Exception:  # noqa: BLE001  # as one that uses a missing attribute
        return None
    stages: list[str] = []
    users, seconds = 0, 0
    while seconds < _LONGEST_S and len(stages) <= _MOST_STAGES:
        level = _ask(clock, seconds)
        if level is None or len(level) > 2:
            break
        begin = seconds
        while seconds < _LONGEST_S and _ask(clock, seconds) == level:
            seconds += 1
        stages += _write(users, level[0], level[1], seconds - begin)
        users = _find_reached(users, level[0], level[1], seconds - begin)
    is_whole = 0 < seconds < _LONGEST_S and _ask(clock, seconds) is None and not clock.oku_failed
    return stages if is_whole and len(stages) <= _MOST_STAGES else None


def _ask(shape: Any, seconds: int) -> tuple[Any, ...] | None:
    """The level that a shape gives for a time: users, spawn rate, and perhaps user classes."""
    shape.oku_failed = False
    shape.get_run_time = lambda: float(seconds)
    try:
        level = shape.tick()
        if level is None:
            return None
        users, rate = int(level[0]), float(level[1])
        if not math.isfinite(rate):
            raise ValueError(f"a rate of {rate}")
    except Exception:  # noqa: BLE001  # it uses a missing attribute, or gives no level
        shape.oku_failed = True
        return None
    return (users, rate, *level[2:])


def _write(users: int, wanted: int, rate: float, seconds: int) -> list[str]:
    ramp_s = min(seconds, math.ceil(abs(wanted - users) / rate)) if rate > 0 else 0
    if ramp_s <= 1:
        return [f"{seconds}s:{wanted}..{wanted}"]
    reached = _find_reached(users, wanted, rate, seconds)
    rest = [f"{seconds - ramp_s}s:{wanted}"] if seconds > ramp_s else []
    return [f"{ramp_s}s:{users}..{reached}", *rest]


def _find_reached(users: int, wanted: int, rate: float, seconds: int) -> int:
    """How many users there are `seconds` after `wanted` were asked for."""
    change = math.floor(rate * seconds)
    return min(wanted, users + change) if wanted > users else max(wanted, users - change)

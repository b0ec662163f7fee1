"""Where a number stands on an axis, from 0 to 1, and the round numbers that are written beside it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 5)
_MOST_RUNGS = 10
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A number on an axis: where, how it is written, whether it is left out where there is little room."""

    at: float
    label: str
    is_minor: bool = False


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis for numbers from `low` to `high`; logarithmic ones begin above 0."""

    low: float
    high: float
    is_log: bool = False

    def place(self, number: float) -> float:
        """Where a number stands; what is outside stands at the end."""
        low, high, at = self.low, self.high, min(max(number, self.low), self.high)
        if self.is_log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)


def build_linear_scale(high: float, most: int = 5) -> tuple[Scale, list[float]]:
    """From 0 to a round number at or above `high`, and at most `most` steps of it."""
    step = choose_step(high / most if high > 0 else 1.0)
    count = max(1, math.ceil(high / step - _EPSILON))
    return Scale(low=0.0, high=step * count), [step * number for number in range(count + 1)]


def build_log_scale(low: float, high: float) -> tuple[Scale, list[float]]:
    """Around `low` to `high`, both above 0, with round numbers: 1, 2, 5 of each decade, or 1 where many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    rungs = [step * 10.0**decade for decade in decades for step in _STEPS]
    first = max((rung for rung in rungs if rung <= low * (1 + _EPSILON)), default=rungs[0])
    last = min((rung for rung in rungs if rung >= high * (1 - _EPSILON) and rung > first), default=rungs[-1])
    inner = [rung for rung in rungs if first <= rung <= last]
    if len(inner) > _MOST_RUNGS:
        inner = [rung for rung in inner if math.isclose(math.log10(rung) % 1, 0, abs_tol=_EPSILON)]
    return Scale(low=first, high=last, is_log=True), inner


def choose_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least so large."""
    decade = 10.0 ** math.floor(math.log10(least))
    return next(
        step for step in (decade, 2 * decade, 5 * decade, 10 * decade) if step >= least * (1 - _EPSILON)
    )


def build_ticks(scale: Scale, numbers: Sequence[float], write: Callable[[float], str]) -> list[AxisTick]:
    """These numbers on a scale."""
    return [AxisTick(scale.place(number), write(number)) for number in numbers]


def format_compact(number: float) -> str:
    """A number for an axis: `950`, `12k`, `1.5M`."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


def format_axis_latency(latency_ms: float) -> str:
    """A latency for an axis, its unit as short as it can be: `200 µs`, `5 ms`, `2 s`."""
    if latency_ms == 0:
        return "0"
    if latency_ms < 1:
        return f"{latency_ms * 1000:g} µs"
    return f"{latency_ms:g} ms" if latency_ms < 1000 else f"{latency_ms / 1000:g} s"

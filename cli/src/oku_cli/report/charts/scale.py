"""Maps numbers to positions on an axis, from 0 to 1, and chooses the round numbers for its ticks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 5)
_MOST_RUNGS = 10
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A tick on an axis: its position, its label, and whether it is left out on a small screen."""

    at: float
    label: str
    is_minor: bool = False


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A scale for numbers from `low` to `high`; `low` of a logarithmic one is above 0."""

    low: float
    high: float
    is_log: bool = False

    def place(self, number: float) -> float:
        """Return the position of a number, from 0 to 1; numbers outside the scale are clamped to its ends."""
        low, high, at = self.low, self.high, min(max(number, self.low), self.high)
        if self.is_log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)


def build_linear_scale(high: float, most: int = 5) -> tuple[Scale, list[float]]:
    """Build a scale from 0 to a round number of at least `high`, and its ticks, at most `most` above 0."""
    step = choose_step(high / most if high > 0 else 1.0)
    count = max(1, math.ceil(high / step - _EPSILON))
    return Scale(low=0.0, high=step * count), [step * number for number in range(count + 1)]


def build_log_scale(low: float, high: float) -> tuple[Scale, list[float]]:
    """Build a scale around `low` and `high`, both above 0, and its ticks: 1, 2, 5 of each decade, or 1."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    rungs = [step * 10.0**decade for decade in decades for step in _STEPS]
    first = max((rung for rung in rungs if rung <= low * (1 + _EPSILON)), default=rungs[0])
    last = min((rung for rung in rungs if rung >= high * (1 - _EPSILON) and rung > first), default=rungs[-1])
    inner = [rung for rung in rungs if first <= rung <= last]
    if len(inner) > _MOST_RUNGS:
        inner = [rung for rung in inner if math.isclose(math.log10(rung) % 1, 0, abs_tol=_EPSILON)]
    return Scale(low=first, high=last, is_log=True), inner


def choose_step(least: float) -> float:
    """Choose the smallest step of at least `least` that is 1, 2 or 5 times a power of ten."""
    decade = 10.0 ** math.floor(math.log10(least))
    return next(
        step for step in (decade, 2 * decade, 5 * decade, 10 * decade) if step >= least * (1 - _EPSILON)
    )


def build_ticks(scale: Scale, numbers: Sequence[float], write: Callable[[float], str]) -> list[AxisTick]:
    """Build ticks for these numbers on a scale."""
    return [AxisTick(scale.place(number), write(number)) for number in numbers]


def format_axis_latency(latency_ms: float) -> str:
    """Format a latency for an axis, in the unit that makes it shortest: `200 µs`, `5 ms`, `2 s`."""
    if latency_ms == 0:
        return "0"
    if latency_ms < 1:
        return f"{latency_ms * 1000:g} µs"
    return f"{latency_ms:g} ms" if latency_ms < 1000 else f"{latency_ms / 1000:g} s"

"""How long the delay server waits before it answers: distributions by their text form, drawn reproducibly.

| text | delay |
| --- | --- |
| `20ms` | always 20 ms |
| `0..3s` | 0, 1, 2 or 3 s, each as likely: whole seconds on both sides draw whole seconds |
| `5ms..80ms` | evenly between 5 and 80 ms |
| `exp:50ms` | exponential with a mean of 50 ms |
| `lognormal:40ms,0.5` | log-normal with a median of 40 ms and a sigma of 0.5 |
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from oku_core.quantity import parse_duration_s

MAX_DELAY_S = 3600.0
"""Longest delay that can be asked for."""

_MASK = (1 << 64) - 1
_RANGE = re.compile(r"(.+)\.\.(.+)")
_WHOLE_SECONDS = re.compile(r"(\d+)s?\.\.(\d+)s")
_UNIT = re.compile(r"[a-zµ]+$", re.IGNORECASE)
_FORMS = "a delay such as 20ms, 0..3s, 5ms..80ms, exp:50ms or lognormal:40ms,0.5"


@dataclass(frozen=True)
class Delay:
    """A distribution of delays.

    Args:
        text: the form it was written in.
        mean_s: its mean, in seconds.
        quantile_s: the delay in seconds for a probability in `[0, 1)`.
    """

    text: str
    mean_s: float
    quantile_s: Callable[[float], float]

    def draw_s(self, seed: int, index: int) -> float:
        """The delay of request `index`: the same for the same seed and index, on every machine."""
        return self.quantile_s(uniform(seed, index))


def uniform(seed: int, index: int) -> float:
    """A number in `[0, 1)`, evenly spread over the indices.

    SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) on the
    index, started at a point that the seed chooses.
    """
    z = _mix(seed & _MASK) + (index + 1) * 0x9E3779B97F4A7C15 & _MASK
    return (_mix(z) >> 11) * 2.0**-53


def parse_delay(value: object) -> Delay:
    """Read one of the forms above; `ValueError` names the value and the forms."""
    text = str(value).strip()
    try:
        delay = _parse_form(text)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text} is not {_FORMS}") from error
    if not 0 <= delay.mean_s <= MAX_DELAY_S:
        raise ValueError(f"{text} is not between 0s and 1h")
    return delay


def _parse_form(text: str) -> Delay:
    kind, _, arguments = text.partition(":")
    if kind == "exp" and arguments:
        return _exponential(text, parse_duration_s(arguments))
    if kind == "lognormal" and arguments:
        median, _, sigma = arguments.partition(",")
        return _lognormal(text, parse_duration_s(median), float(sigma))
    if match := _WHOLE_SECONDS.fullmatch(text):
        return _whole_seconds(text, int(match[1]), int(match[2]))
    if match := _RANGE.fullmatch(text):
        unit = _UNIT.search(match[2])
        low = match[1] if _UNIT.search(match[1]) or not unit else match[1] + unit[0]
        return _even(text, parse_duration_s(low), parse_duration_s(match[2]))
    fixed_s = parse_duration_s(text)
    return Delay(text, fixed_s, lambda _: fixed_s)


def _whole_seconds(text: str, low: int, high: int) -> Delay:
    if low > high:
        raise ValueError(text)
    span = high - low + 1
    return Delay(text, (low + high) / 2, lambda p: float(low + int(p * span)))


def _even(text: str, low_s: float, high_s: float) -> Delay:
    if not 0 <= low_s <= high_s:
        raise ValueError(text)
    return Delay(text, (low_s + high_s) / 2, lambda p: low_s + p * (high_s - low_s))


def _exponential(text: str, mean_s: float) -> Delay:
    return Delay(text, mean_s, lambda p: -mean_s * math.log1p(-p))


def _lognormal(text: str, median_s: float, sigma: float) -> Delay:
    if not 0 <= sigma <= 5 or median_s < 0:
        raise ValueError(text)
    normal = NormalDist().inv_cdf
    mean_s = median_s * math.exp(sigma * sigma / 2)
    # inv_cdf is not defined at 0, which a draw may be.
    return Delay(text, mean_s, lambda p: median_s * math.exp(sigma * normal(p or 2.0**-54)))


def _mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)

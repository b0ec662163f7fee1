"""How long a delay server waits before it responds, and the headers by which requests instruct it.

A delay is a distribution written as text, drawn reproducibly.

| text | delay |
| --- | --- |
| `20ms` | always 20 ms |
| `0..3s` | 0, 1, 2 or 3 s, equally likely: if both limits are whole seconds, so is every delay |
| `5ms..80ms` | uniform between 5 and 80 ms |
| `exp:50ms` | exponential with a mean of 50 ms |
| `lognormal:40ms,0.5` | log-normal with a median of 40 ms and a sigma of 0.5 |
"""

import math
import re
import string
from collections.abc import Callable
from statistics import NormalDist
from typing import Self

from oku_core.errors import format_value
from oku_core.spec.values.quantity import parse_duration_s
from oku_core.uniform import uniform

MAX_DELAY_S = 3600.0
"""The longest delay that a user can ask for. The tails of `exp` and `lognormal` are cut here, too."""

_LAST_P = 1 - 2.0**-53
_WHOLE_SECONDS = re.compile(r"[0-9_]+ *[sS]?")
_UNIT_LETTERS = string.ascii_letters + "µ"
_SIGMA = re.compile(r" *[0-9]+(\.[0-9]+)?")
_FORMS = "a delay such as 20ms, 0..3s, 5ms..80ms, exp:50ms or lognormal:40ms,0.5"


class Delay(str):
    """A distribution of delays; as a string, it is the text that the user wrote.

    Attributes:
        mean_s: the mean of the distribution in seconds, before its tail is cut.
        quantile_s: the quantile function: maps a probability in `[0, 1)` to a delay in seconds, at most
            `MAX_DELAY_S`.
    """

    __slots__ = ("mean_s", "quantile_s")
    mean_s: float
    quantile_s: Callable[[float], float]

    def __new__(cls, text: str, mean_s: float, quantile_s: Callable[[float], float]) -> Self:
        """Build a distribution from the parts that `parse_delay` has read from `text`."""
        delay = super().__new__(cls, text)
        delay.mean_s, delay.quantile_s = mean_s, quantile_s
        return delay

    def draw_s(self, seed: int, index: int) -> float:
        """The delay of request `index` in seconds; it depends on the seed and the index alone."""
        return self.quantile_s(uniform(seed, index))


def parse_delay(value: object) -> Delay:
    """Parse one of the forms above.

    Raises:
        ValueError: the value has none of the forms, or its delays are out of bounds. The message shows the
            value and the allowed forms.
    """
    shown = format_value(value)
    try:
        delay = _parse_form(str(value).strip())
    except ValueError as error:
        raise ValueError(f"{shown} is not {_FORMS}") from error
    if not 0 <= delay.mean_s <= MAX_DELAY_S or delay.quantile_s(_LAST_P) > MAX_DELAY_S:
        raise ValueError(f"{shown} is not between 0s and 1h")
    return delay


def _parse_form(text: str) -> Delay:
    if not text.isprintable():
        raise ValueError(text)
    kind, _, arguments = text.partition(":")
    if kind == "exp":
        return _exponential(text, parse_duration_s(arguments))
    if kind == "lognormal":
        median, _, sigma = arguments.partition(",")
        return _lognormal(text, parse_duration_s(median), sigma)
    low, _, high = text.rpartition("..")
    if low and high:
        return _between(text, low.strip(), high.strip())
    fixed_s = parse_duration_s(text)
    return Delay(text, fixed_s, lambda _: fixed_s)


def _between(text: str, low: str, high: str) -> Delay:
    if low[-1:] not in _UNIT_LETTERS:
        low += high[len(high.rstrip(_UNIT_LETTERS)) :]
    low_s, high_s = parse_duration_s(low), parse_duration_s(high)
    if not 0 <= low_s <= high_s:
        raise ValueError(text)
    mean_s = (low_s + high_s) / 2
    if _WHOLE_SECONDS.fullmatch(low) and _WHOLE_SECONDS.fullmatch(high):
        span = int(high_s - low_s) + 1
        return Delay(text, mean_s, lambda p: low_s + int(p * span))
    return Delay(text, mean_s, lambda p: low_s + p * (high_s - low_s))


def _exponential(text: str, mean_s: float) -> Delay:
    return Delay(text, mean_s, lambda p: min(-mean_s * math.log1p(-p), MAX_DELAY_S))


def _lognormal(text: str, median_s: float, sigma_text: str) -> Delay:
    if not _SIGMA.fullmatch(sigma_text) or (sigma := float(sigma_text)) > 5 or median_s < 0:
        raise ValueError(text)
    normal = NormalDist().inv_cdf
    mean_s = median_s * math.exp(sigma * sigma / 2)
    # A draw can be 0, where inv_cdf is undefined.
    return Delay(text, mean_s, lambda p: min(median_s * math.exp(sigma * normal(p or 2.0**-54)), MAX_DELAY_S))


RUN_HEADER = "Oku-Run"
DELAY_HEADER = "Oku-Delay"
SEED_HEADER = "Oku-Seed"

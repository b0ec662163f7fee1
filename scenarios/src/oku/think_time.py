"""How long a user thinks: a time, or a distribution of times."""

from collections.abc import Callable
from functools import lru_cache

from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.quantity import parse_duration_s


@lru_cache(256)
def parse_think_time(text: str | float) -> Callable[[float], float]:
    """Read a think time: seconds, `1.5s`, `1s..3s` (any time between), or another form of a delay.

    Returns a function from a probability in `[0, 1)` to seconds.

    Raises:
        ValueError: this is none.
    """
    low, dots, high = str(text).partition("..")
    if not dots:
        return parse_delay(text).quantile_s
    high_s = parse_duration_s(high.strip())
    unit = high.strip().lstrip("0123456789._ ")
    low_s = parse_duration_s(low.strip() if low.strip().lstrip("0123456789._ ") else f"{low.strip()}{unit}")
    if not 0 <= low_s <= high_s:
        raise ValueError(f"{text!r} is not a think time such as 2s, 1s..3s or exp:2s")
    return lambda p: low_s + p * (high_s - low_s)

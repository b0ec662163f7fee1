"""How the delay server misbehaves on request: which fault a request gets, from rates and a random number.

For a numeric name, that number is a pure function of seed and index. It has a stream of its own, so that a
fault is independent of the delay of the same request.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from oku_core.uniform import uniform

_FAULT_STREAM = 0x6F6B752D6661756C
"""Changes the seed (the letters `oku-faul`), so that faults are drawn from another stream than delays."""
_ROUNDING = 1e-9


class Fault(StrEnum):
    """What a request gets instead of a proper response."""

    ERROR = "error"
    """A response with status 500."""
    RESET = "reset"
    """The connection is reset."""
    STALL = "stall"
    """There is no response until the client goes away."""
    TRUNCATE = "truncate"
    """The first half of the announced body is sent, then the connection ends."""


@dataclass(frozen=True, kw_only=True)
class FaultRates:
    """How often each fault happens, as fractions of all requests.

    Raises:
        ValueError: a rate is not between 0 and 1, or they sum to more than 1.
    """

    error: float = 0.0
    reset: float = 0.0
    stall: float = 0.0
    truncate: float = 0.0

    def __post_init__(self) -> None:
        """Check the rates."""
        for fault, rate in self.by_fault.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the {fault} rate {rate:g} is not between 0 and 1")
        total = math.fsum(self.by_fault.values())
        if total > 1 + _ROUNDING:
            raise ValueError(f"the rates of all faults sum to {total:g}, which is not at most 1")

    @cached_property
    def by_fault(self) -> Mapping[Fault, float]:
        """The rate of each fault."""
        return {
            Fault.ERROR: self.error,
            Fault.RESET: self.reset,
            Fault.STALL: self.stall,
            Fault.TRUNCATE: self.truncate,
        }

    def choose(self, number: float) -> Fault | None:
        """The fault for a number in `[0, 1)`; None is a proper response."""
        for fault, rate in self.by_fault.items():
            if number < rate:
                return fault
            number -= rate
        return None

    def draw(self, seed: int, index: int) -> Fault | None:
        """The fault of request `index`: the same for the same seed and index, on every machine."""
        return self.choose(uniform(seed ^ _FAULT_STREAM, index))

    def __bool__(self) -> bool:
        """Whether any fault can happen."""
        return any(self.by_fault.values())


def parse_fraction(text: str) -> float:
    """A fraction from 0 to 1; `ValueError` names the value."""
    try:
        rate = float(text)
    except ValueError:
        raise ValueError(f"{text} is not a fraction between 0 and 1, such as 0.01") from None
    if not 0 <= rate <= 1:
        raise ValueError(f"{text} is not between 0 and 1")
    return rate

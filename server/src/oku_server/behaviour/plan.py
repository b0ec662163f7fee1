"""What a request gets: its delay and its fault, from its name and what it wishes.

A numeric name is an index, and index and seed decide: every run and every engine meets the same delays and
faults. Any other name gets both by chance.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from oku_core.spec.delay import Delay, parse_delay
from oku_server.behaviour.fault import Fault, FaultRates
from oku_server.behaviour.overrides import Overrides

_INDEX_DIGITS = 18
"""Longer numbers are no index: a spec has at most 10**15 requests."""
_LAST_NUMBER = 1 - 2.0**-53


class Plan(NamedTuple):
    """The delay in seconds before anything happens, and what happens then; None is a proper answer."""

    delay_s: float
    fault: Fault | None


class Planner:
    """Makes the plan of a request.

    Args:
        delay: the distribution of the delays.
        faults: how often each fault happens.
        seed: chooses which delay and which fault each index gets.
        chance: a random number in `[0, 1)`, for names that are no index.

    Attributes:
        always: the plan of every request, if all have the same.
    """

    def __init__(self, delay: Delay, faults: FaultRates, seed: int, chance: Callable[[], float]) -> None:
        self._delay = delay
        self._faults = faults
        self._has_faults = bool(faults)
        self._seed = seed
        self._chance = chance
        # Quantiles grow: where the ends are equal, there is nothing to draw.
        low_s, high_s = delay.quantile_s(0.0), delay.quantile_s(_LAST_NUMBER)
        self.always = Plan(low_s, None) if low_s == high_s and not self._has_faults else None

    def plan(self, name: bytes) -> Plan:
        """The plan of the request with this name."""
        if self.always is not None:
            return self.always
        index = parse_index(name)
        if index is None:
            return Plan(self._delay.quantile_s(self._chance()), self._faults.choose(self._chance()))
        fault = self._faults.draw(self._seed, index) if self._has_faults else None
        return Plan(self._delay.draw_s(self._seed, index), fault)

    def build_wished(self, wish: Overrides) -> "Planner":
        """A planner for requests with this wish; how often each fault happens is no part of it."""
        delay = self._delay if wish.delay is None else parse_delay(wish.delay)
        seed = self._seed if wish.seed is None else wish.seed
        return Planner(delay, self._faults, seed, self._chance)


def find_name(target: bytes) -> bytes:
    """The name in the target of a request: its path without the first slash.

    Raises:
        ValueError: the target is no URL.
    """
    if target.startswith(b"/"):
        return target[1:].partition(b"?")[0]
    # A client that takes this server for a proxy names the whole URL.
    return urlsplit(target.decode("latin-1")).path.removeprefix("/").encode("latin-1")


def parse_index(name: bytes) -> int | None:
    """The index that a numeric name is; None for any other name."""
    return int(name) if name.isdigit() and len(name) <= _INDEX_DIGITS else None

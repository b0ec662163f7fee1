"""The delay and the fault that a request gets, from its name and its overrides.

A numeric name is an index, and index and seed decide: every run and every engine meets the same delays and
faults. A request with any other name gets both at random. By the headers `Oku-Delay` and `Oku-Seed` a request
overrides the delay and the seed of the server: a coordinator cannot restart the servers of a cluster for each
run.
"""

from functools import lru_cache
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

from oku_core.digits import parse_digits
from oku_core.errors import format_value
from oku_core.spec.values.delay import DELAY_HEADER, SEED_HEADER, Delay, parse_delay
from oku_server.behaviour.fault import Fault, FaultRates

_INDEX_DIGITS = 18
"""Longer numbers are not indices: a spec has at most 10**15 requests."""
_LAST_NUMBER = 1 - 2.0**-53
MOST_OVERRIDES = 64
"""How many different overrides are cached: a load generator repeats the same ones in every request."""
MAX_SEED = 2**63 - 1
"""The largest seed of a run."""


class Overrides(NamedTuple):
    """The delay and the seed that a request asks for; where one is None, the server's own applies."""

    delay: Delay | None = None
    seed: int | None = None


NO_OVERRIDES = Overrides()


class OverridesError(Exception):
    """A header is not valid; the message is one line with the header, its value and the allowed values."""


@lru_cache(maxsize=MOST_OVERRIDES)
def parse_overrides(delay: bytes | None, seed: bytes | None) -> Overrides:
    """Parse the values of the two headers; None stands for a header that the request does not have.

    Raises:
        OverridesError: a value is not valid.
    """
    return Overrides(
        None if delay is None else _read_delay(delay), None if seed is None else _read_seed(seed)
    )


def _read_delay(value: bytes) -> Delay:
    try:
        return parse_delay(value.decode())
    except UnicodeDecodeError:
        raise OverridesError(f"{DELAY_HEADER}: {value[:60]!r} is not UTF-8") from None
    except ValueError as error:
        raise OverridesError(f"{DELAY_HEADER}: {error}") from None


def _read_seed(value: bytes) -> int:
    if (seed := parse_digits(value, MAX_SEED)) is not None:
        return seed
    shown = format_value(value.decode("latin-1"))
    raise OverridesError(f"{SEED_HEADER}: {shown} is not a whole number between 0 and {MAX_SEED}")


class DelayPlan(NamedTuple):
    """The delay in seconds before anything happens, and the fault that follows; None is a proper response."""

    delay_s: float
    fault: Fault | None


class Planner:
    """Makes the plan of a request.

    Args:
        delay: the distribution of the delays.
        faults: how often each fault happens.
        seed: chooses which delay and which fault each index gets.
        random: draws for names that are not an index.

    Attributes:
        always: the plan of every request, if all requests have the same one.
    """

    def __init__(self, delay: Delay, faults: FaultRates, seed: int, random: Random) -> None:
        self._delay = delay
        self._faults = faults
        self._has_faults = bool(faults)
        self._seed = seed
        self._random = random
        self._chance = random.random
        # Quantiles grow: where the ends are equal, there is nothing to draw.
        low_s, high_s = delay.quantile_s(0.0), delay.quantile_s(_LAST_NUMBER)
        self.always = DelayPlan(low_s, None) if low_s == high_s and not self._has_faults else None

    def plan(self, name: bytes) -> DelayPlan:
        """The plan of the request with this name."""
        if self.always is not None:
            return self.always
        index = parse_index(name)
        if index is None:
            return DelayPlan(self._delay.quantile_s(self._chance()), self._faults.choose(self._chance()))
        fault = self._faults.draw(self._seed, index) if self._has_faults else None
        return DelayPlan(self._delay.draw_s(self._seed, index), fault)

    def override(self, overrides: Overrides) -> "Planner":
        """A planner for requests with these overrides; how often each fault happens stays the same."""
        delay = self._delay if overrides.delay is None else overrides.delay
        seed = self._seed if overrides.seed is None else overrides.seed
        return Planner(delay, self._faults, seed, self._random)


def find_name(target: bytes) -> bytes:
    """The name in the target of a request: its path without the first slash.

    Raises:
        ValueError: the target is not a URL.
    """
    if target.startswith(b"/"):
        return target[1:].partition(b"?")[0]
    # A client that takes this server for a proxy names the whole URL.
    return urlsplit(target.decode("latin-1")).path.removeprefix("/").encode("latin-1")


def parse_index(name: bytes) -> int | None:
    """The index that a numeric name stands for; None for any other name."""
    return int(name) if name.isdigit() and len(name) <= _INDEX_DIGITS else None

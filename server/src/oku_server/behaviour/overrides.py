"""The headers `Oku-Delay` and `Oku-Seed`, by which a request overrides the delay and the seed of the server.

A coordinator cannot restart the servers of a cluster for each run, so each request says what it wants. A load
generator repeats the same overrides in every request, so the last ones are cached.
"""

from functools import lru_cache
from typing import NamedTuple

from oku_core.digits import parse_digits
from oku_core.errors import format_value
from oku_core.spec.values.delay import DELAY_HEADER, SEED_HEADER, Delay, parse_delay

MOST_OVERRIDES = 64
"""How many different overrides are cached."""
MAX_SEED = 2**63 - 1
"""The largest seed of a run."""


class Overrides(NamedTuple):
    """The delay and the seed that a request asks for; where one is None, the server's own applies."""

    delay: Delay | None = None
    seed: int | None = None


NO_OVERRIDES = Overrides()


class OverridesError(Exception):
    """A header is not valid; the message is one line that names the header, its value and what is allowed."""


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

"""What a request wishes in place of the server's own delay and seed: the headers `Oku-Delay` and `Oku-Seed`.

A coordinator cannot start the servers of a cluster anew for each run, so each request says it. A client that
makes load wishes the same all the time: the last ones are remembered.
"""

from functools import lru_cache
from typing import NamedTuple

from oku_core.errors import format_value
from oku_core.messaging.server_headers import DELAY_HEADER, SEED_HEADER
from oku_core.spec.delay import parse_delay

MOST = 64
"""So many wishes are remembered."""
MAX_SEED = 2**63 - 1
"""The largest seed of a run."""

_SEED_DIGITS = 19


class Overrides(NamedTuple):
    """The delay in its text form and the seed; None is what the server has."""

    delay: str | None = None
    seed: int | None = None


NO_WISH = Overrides()


class OverridesError(Exception):
    """A header cannot be read; the message is one line that names header, value and what is allowed."""


@lru_cache(maxsize=MOST)
def parse_overrides(delay: bytes | None, seed: bytes | None) -> Overrides:
    """Read the values of the two headers, each None where there is no such header.

    Raises:
        OverridesError: a value is not one that may stand there.
    """
    return Overrides(
        None if delay is None else _read_delay(delay), None if seed is None else _read_seed(seed)
    )


def _read_delay(value: bytes) -> str:
    try:
        return parse_delay(value.decode()).text
    except UnicodeDecodeError:
        raise OverridesError(f"{DELAY_HEADER}: {value[:60]!r} is not UTF-8") from None
    except ValueError as error:
        raise OverridesError(f"{DELAY_HEADER}: {error}") from None


def _read_seed(value: bytes) -> int:
    # The digits are counted first: reading a long number takes long.
    if value.isdigit() and len(value) <= _SEED_DIGITS and int(value) <= MAX_SEED:
        return int(value)
    shown = format_value(value.decode("latin-1"))
    raise OverridesError(f"{SEED_HEADER}: {shown} is not a whole number between 0 and {MAX_SEED}")

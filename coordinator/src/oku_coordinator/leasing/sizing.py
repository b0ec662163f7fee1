"""How large a lease is: a pure rule.

A lease is meant to last about ten seconds at its worker's rate. While the rate is unknown it is a few windows
of requests; near the end of the space it shrinks, so that all workers end together (guided self-scheduling:
Polychronopoulos and Kuck, IEEE Transactions on Computers C-36, 1987).
"""

import math

from oku_core.spec.spec import Spec

LEASE_S = 10.0
"""What a lease is meant to last."""
MAX_SIZE = 2_000_000
"""No lease is larger, whatever the rate."""
_WINDOWS_AT_FIRST = 8
_SMALLEST_WINDOWS = 2
"""A lease keeps its slot until its slowest answer is in; the next must keep the window full that long."""
_SMALLEST_LEASE_S = 0.5
_SMALLEST = 50


def size_lease(spec: Spec, pending: int, *, workers: int, rate_rps: float | None) -> int:
    """How many requests the next lease should have.

    Args:
        spec: of the run; its `range_size` overrides all.
        pending: requests that are in no lease; at least 1.
        workers: how many share them; at least 1.
        rate_rps: what the worker does in a second, None when unknown.
    """
    if spec.range_size is not None:
        return min(spec.range_size, pending)
    smallest = max(_SMALLEST, _SMALLEST_WINDOWS * spec.concurrency)
    if rate_rps is None:
        size = _WINDOWS_AT_FIRST * spec.concurrency
    else:
        size = math.ceil(LEASE_S * rate_rps)
        smallest = max(smallest, math.ceil(_SMALLEST_LEASE_S * rate_rps))
    share = math.ceil(pending / (2 * workers))
    return min(pending, MAX_SIZE, max(smallest, min(size, share)))

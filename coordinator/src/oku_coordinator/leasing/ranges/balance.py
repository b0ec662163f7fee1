"""Who should give untaken work back, so that all workers end together: pure rules.

A worker that is asked to shorten leases answers with the ends that it can still keep. Only that answer frees
the rest.
"""

import math
from collections.abc import Sequence

from oku_coordinator.leasing.delivery import AskedEnds
from oku_coordinator.leasing.ranges.sizing import Hands, find_mean_rate, find_weight

_MOST_S = 30.0
"""Nobody keeps more work than this; it was given on a wrong guess of the rate."""
_KEPT_S = 15.0
_MOST_WINDOWS = 3
"""Hands that were not quite full with two windows may get a lease of one more."""
_KEPT_WINDOWS = 2
_MARGIN_S = 1.0
"""Work that is not worth the messages."""


def find_excess(hands: Sequence[Hands]) -> AskedEnds:
    """Shorten those who have far more work than was meant; what they keep still fills their hands."""
    asked: AskedEnds = {}
    for each in hands:
        if each.untaken > max(_MOST_WINDOWS * each.window, _MOST_S * each.most_rps):
            asked |= shorten(each, max(_KEPT_WINDOWS * each.window, math.ceil(_KEPT_S * each.most_rps)))
    return asked


def find_uneven(hands: Sequence[Hands]) -> AskedEnds:
    """Shorten those who would end later than all would together, when nothing is left to deal out."""
    mean_rps = find_mean_rate(hands)
    weights = [find_weight(each, mean_rps) for each in hands]
    if not (total := sum(weights)):
        return {}
    even_s = sum(each.untaken for each in hands) / total
    asked: AskedEnds = {}
    for each, weight in zip(hands, weights, strict=True):
        if each.untaken > (even_s + _MARGIN_S) * weight:
            asked |= shorten(each, math.ceil(even_s * weight))
    return asked


def shorten(hands: Hands, keep: int) -> AskedEnds:
    """Ask a worker to keep only so much of its untaken work, that which it would do first."""
    ends: dict[str, int] = {}
    for lease in hands.leases:
        kept = min(lease.end - lease.taken, keep)
        keep -= kept
        if lease.taken + kept < lease.end:
            ends[lease.id] = lease.taken + kept
    return {hands.incarnation: ends} if ends else {}

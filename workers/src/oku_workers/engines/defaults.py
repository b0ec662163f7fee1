"""Limits that all engines share."""

STUCK_S = 5.0
"""A request that does not end so long after it was cut off never will, as far as anybody can say."""

"""Limits that all engines share."""

PIECE_BYTES = 65_536
"""A longer body is sent in pieces of so many bytes: a transport may copy all that it is given at once, and
other connections wait meanwhile."""
STUCK_S = 5.0
"""A request that does not end so long after it was cut off never will, as far as anybody can say."""

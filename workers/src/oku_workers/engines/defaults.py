"""Limits that all engines share."""

PIECE_BYTES = 65_536
"""A longer body is sent in pieces of so many bytes: what is given to a transport at once may be copied as a whole,
and holds up all other connections."""
STUCK_S = 5.0
"""A request that does not end so long after it was cut off never will, as far as anybody can say."""

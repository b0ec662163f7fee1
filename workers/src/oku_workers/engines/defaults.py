"""Limits that all engines share."""

PIECE_BYTES = 65_536
"""Longer bodies are sent in pieces of this size: a transport may copy everything it is given, while other
connections wait."""
STUCK_S = 5.0
"""A request that does not end so long after it was cut off never will, as far as anybody can say."""

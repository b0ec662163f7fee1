"""How the arrivals of an open run are spread over the time that its rate gives them."""

from enum import StrEnum


class Arrivals(StrEnum):
    """How arrivals follow a rate."""

    EVEN = "even"
    """At equal distances, or at those of a ramp; the default."""
    POISSON = "poisson"
    """At random and independent of each other, as those of many users are; drawn from a seed."""

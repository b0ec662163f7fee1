"""A connection to the broker, as a sender asks for it."""

from dataclasses import dataclass


@dataclass
class LinkTwin:
    """The broker is within reach, unless it is set that it is not."""

    is_connected: bool = True

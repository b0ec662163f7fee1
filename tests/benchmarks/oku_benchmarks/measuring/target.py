"""What contestants ask, and what counts what they ask."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Target(Protocol):
    """Something that serves, and knows how many requests it has received."""

    url: str
    """Template of its URLs, with `{i}` for the index; empty when `oku run` brings its own delay servers."""

    def read_served(self) -> int:
        """How many requests it has received."""


@dataclass
class Place:
    """One URL of a server, as a target of its own.

    Args:
        url: template, with `{i}` for the index.
        read_served: how many requests all of the server has received.
    """

    url: str
    read_served: Callable[[], int]


def pick_port() -> int:
    """A port of loopback on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port

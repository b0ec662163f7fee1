"""What contestants ask, and what counts what they ask."""

from typing import Protocol


class Target(Protocol):
    """Something that serves, and knows how many requests it has received."""

    url: str
    """Template of its URLs, with `{i}` for the index; empty when `oku run` brings its own delay servers."""

    def read_served(self) -> int:
        """How many requests it has received."""

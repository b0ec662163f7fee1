"""The responses that an engine has parsed before: most targets of a load test answer in few ways."""

from oku_workers.engines.counting import Parsed

MOST = 256
LONGEST_BYTES = 1024
"""How many responses are remembered, and how long each may be: at most 0.3 MB in all."""


class ResponseCache:
    """What the parser made of whole responses that left their connection open.

    It is valid for one kind of request only: the meaning depends on the method and what is expected.
    """

    def __init__(self) -> None:
        self._parsed: dict[bytes, Parsed] = {}
        self.find = self._parsed.get
        """What was made of the response that consists of these bytes, or None."""

    @property
    def count(self) -> int:
        """How many responses are remembered."""
        return len(self._parsed)

    def add(self, response: bytes, parsed: Parsed) -> None:
        """Remember a response, unless it is long; when there are too many, all others are forgotten."""
        if len(response) > LONGEST_BYTES:
            return
        if len(self._parsed) >= MOST:
            self._parsed.clear()
        self._parsed[response] = parsed

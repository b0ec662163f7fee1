"""A cache of parsed request heads, because a load generator sends the same head again and again.

Only the first line of its requests changes, with the index. What a parser makes of the lines after it depends
on their bytes alone, as long as method and version are the same. So a request that arrives in one piece and
whose lines are cached needs no parser.
"""

from collections.abc import Callable

from oku_server.http.planned_response import DelayedResponse

MOST = 256
LONGEST_BYTES = 2048
"""How many heads are cached, and how long each may be; together they take half a megabyte at most."""

_METHOD = b"GET /"
_VERSION = b" HTTP/1.1\r\n"
_NAME_BYTES = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/._~"
"""The characters of a plain name: none of them means anything to a parser or begins a query."""


FindResponse = Callable[[bytes], DelayedResponse]
"""Finds the response to a plain request for a name."""


class HeadCache:
    """The lines after the first of plain requests, with the run that they name and a finder of responses.

    A plain request is an HTTP/1.1 `GET` for a plain name. It leaves its connection open, and it arrives in
    one piece with nothing before or after it.
    """

    def __init__(self) -> None:
        self._known_by_lines: dict[bytes, tuple[str, FindResponse]] = {}

    def find(self, data: bytes) -> tuple[bytes, tuple[str, FindResponse]] | None:
        """The name in a plain request, and the entry for its lines; None for all other data."""
        first, _, lines = data.partition(_VERSION)
        known = self._known_by_lines.get(lines)
        if known is None or first[:5] != _METHOD:
            return None
        name = first[5:]
        return (name, known) if name.isalnum() or is_plain(name) else None

    def add(self, data: bytes, run: str, find_response: FindResponse) -> None:
        """Cache the lines of a request that the parser found to be plain, apart from its name."""
        first, _, lines = data.partition(_VERSION)
        if len(lines) > LONGEST_BYTES or not first.startswith(_METHOD) or not is_plain(first[5:]):
            return
        if len(self._known_by_lines) >= MOST:
            self._known_by_lines.clear()
        self._known_by_lines[lines] = run, find_response

    def __len__(self) -> int:
        """How many heads are cached."""
        return len(self._known_by_lines)


def is_plain(name: bytes) -> bool:
    """Whether a parser would read `name` as it is written."""
    return not name.translate(None, _NAME_BYTES)

"""The request heads that the server has parsed already: a client that makes load sends them again and again.

Only the first line of its requests changes, by the index. What a parser makes of the lines after it depends
on their bytes alone, as long as method and version are the same: a request in one piece whose lines are known
needs no parser.
"""

from collections.abc import Callable

from oku_server.http.reply import Reply

MOST = 256
LONGEST_BYTES = 2048
"""How many are remembered, and how long they may be: half a megabyte at the most."""

_METHOD = b"GET /"
_VERSION = b" HTTP/1.1\r\n"
_NAME_BYTES = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/._~"
"""What a plain name consists of: no byte of it means anything to a parser, or begins a query."""


FindReply = Callable[[bytes], Reply]
"""Gives the reply to a plain request for a name."""


class HeadCache:
    """What follows the first line of plain requests, each with the run that it names and who replies to it.

    A plain request is a `GET` of HTTP/1.1 for a plain name which leaves its connection open and came whole,
    in one piece with nothing before or behind it.
    """

    def __init__(self) -> None:
        self._known_by_lines: dict[bytes, tuple[str, FindReply]] = {}

    def find(self, data: bytes) -> tuple[bytes, tuple[str, FindReply]] | None:
        """Name of a plain request whose lines are known, and what that is; None for all other data."""
        first, _, lines = data.partition(_VERSION)
        known = self._known_by_lines.get(lines)
        if known is None or first[:5] != _METHOD:
            return None
        name = first[5:]
        return (name, known) if name.isalnum() or is_plain(name) else None

    def add(self, data: bytes, run: str, find_reply: FindReply) -> None:
        """Remember the lines of a request that a parser found to be plain, but for its name."""
        first, _, lines = data.partition(_VERSION)
        if len(lines) > LONGEST_BYTES or not first.startswith(_METHOD) or not is_plain(first[5:]):
            return
        if len(self._known_by_lines) >= MOST:
            self._known_by_lines.clear()
        self._known_by_lines[lines] = run, find_reply

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._known_by_lines)


def is_plain(name: bytes) -> bool:
    """Whether `name` is plain."""
    return not name.translate(None, _NAME_BYTES)

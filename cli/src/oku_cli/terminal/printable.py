"""Makes foreign text safe for a terminal: control characters become visible signs.

Escape sequences, line breaks and changes of direction can then neither move the cursor nor imitate a line of
Oku's own.
"""

import codecs
import re
import sys
from typing import TextIO

from oku_cli.terminal.ci_commands import escape_marks

UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Matches control characters, changes of direction, invisible characters and lone surrogates.

Joiners stay: scripts and emoji need them."""
_UNPRINTABLE_IN_JSON = re.compile("(?!\n)" + UNPRINTABLE.pattern)
"""In JSON a line break can only stand between strings."""
_UNPRINTABLE_IN_ASCII = re.compile(f"{_UNPRINTABLE_IN_JSON.pattern}|[^\x00-\x7f]")
_PICTURES, _DELETE, _DELETE_PICTURE = 0x2400, "\x7f", "\u2421"
"""Unicode has signs for the 32 control characters from U+2400 on, in their order, and one for DEL."""


def make_printable(text: str) -> str:
    """Replace each control character in the text by one visible sign."""
    return UNPRINTABLE.sub(_picture, text)


def escape_json(document: bytes, *, is_ascii: bool = False) -> bytes:
    """Escape control characters and commands of CI systems in JSON, or all but ASCII.

    A program reads the same document.
    """
    pattern = _UNPRINTABLE_IN_ASCII if is_ascii else _UNPRINTABLE_IN_JSON
    text = pattern.sub(_escape, document.decode())
    if "#" in text:  # no line of JSON begins with a mark of another kind
        text = escape_marks(text, _escape_character)
    return text.encode()


def needs_ascii() -> bool:
    """Whether the reader of standard output may decode it as something other than UTF-8."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name != "utf-8"


def write_line(line: str) -> None:
    """Write a line to standard output."""
    _write(sys.stdout, line)


def write_note(line: str) -> None:
    """Write a line to standard error."""
    _write(sys.stderr, line)


def write_error(line: str) -> None:
    """Write an error of `oku` to standard error."""
    write_note(f"oku: {line}")


def _write(stream: TextIO, line: str) -> None:
    # Not through click, which writes UTF-8 to a terminal that declares ASCII.
    stream.write(f"{make_printable(line)}\n")
    stream.flush()


def _escape(found: re.Match[str]) -> str:
    return _escape_character(found[0])


def _escape_character(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def _picture(found: re.Match[str]) -> str:
    character = found[0]
    if character == _DELETE:
        return _DELETE_PICTURE
    return chr(_PICTURES + ord(character)) if character < " " else "\N{REPLACEMENT CHARACTER}"

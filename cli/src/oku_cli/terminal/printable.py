"""Makes foreign text safe for a terminal: control characters become visible signs.

Escape sequences, line breaks and changes of direction can then neither move the cursor nor imitate a line of
Oku's own.
"""

import re

import click

UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Matches control characters, changes of direction, invisible characters and lone surrogates.

Joiners stay: scripts and emoji need them."""
_UNPRINTABLE_IN_JSON = re.compile("(?!\n)" + UNPRINTABLE.pattern)
"""In JSON a line break can only stand between strings."""
_PICTURES, _DELETE, _DELETE_PICTURE = 0x2400, "\x7f", "\u2421"
"""Unicode has signs for the 32 control characters from U+2400 on, in their order, and one for DEL."""


def make_printable(text: str) -> str:
    """Replace each control character in the text by one visible sign."""
    return UNPRINTABLE.sub(_picture, text)


def escape_json(document: bytes) -> bytes:
    """Escape control characters in JSON; a program reads the same document."""
    return _UNPRINTABLE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document.decode()).encode()


def write_line(line: str) -> None:
    """Write a line to standard output."""
    click.echo(make_printable(line))  # noqa: TID251


def write_note(line: str) -> None:
    """Write a line to standard error."""
    click.echo(make_printable(line), err=True)  # noqa: TID251


def write_error(line: str) -> None:
    """Write an error of `oku` to standard error."""
    write_note(f"oku: {line}")


def _picture(found: re.Match[str]) -> str:
    character = found[0]
    if character == _DELETE:
        return _DELETE_PICTURE
    return chr(_PICTURES + ord(character)) if character < " " else "\N{REPLACEMENT CHARACTER}"

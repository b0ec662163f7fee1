r"""Splits a command as cmd.exe does and then the program that it starts ("Copy as cURL (cmd)").

First cmd.exe takes away carets, outside of quotes: `^"` is a quote that means nothing to it, so browsers put
one before each. Then the program splits its command line into arguments, in which `\"` is a quote.
"""

import re

_CMD_PARTS = re.compile(
    r"""
    \^(?:\n(?P<next>[\s\S]?)|(?P<escaped>[\s\S]?))
  | (?P<quoted>"[^"\n]*+"?)
  | (?P<special>[&|<>\n])
    """,
    re.VERBOSE,
)
_VARIABLE = re.compile(r"%[A-Za-z_]\w*+%(?![0-9A-Fa-f]{2})", re.ASCII)
"""Not two bytes in percent-encoding."""
_KEPT_CARET = re.compile(r"""\^(?:[^\w\s:=+~'/.,?;()*`-]|$)""", re.ASCII)
"""A caret that browsers used to write within quotes as well, where cmd.exe leaves it."""
_ARGUMENT_PARTS = re.compile(r'(?P<gap>[ \t]++)|(?P<slashes>\\*+)"|(?P<plain>[^ \t"\\]++|\\++)')
_BASH = "copy the command as cURL (bash)"


def split_windows_words(command: str) -> list[str]:
    """Split a command for cmd.exe into words.

    Raises:
        ValueError: something would be expanded or run, or carets would change the meaning.
    """
    if found := _VARIABLE.search(command):
        raise ValueError(f"{found[0]} stands for something that only the shell knows")
    return _split_arguments(_CMD_PARTS.sub(_read_part, command.replace("\r\n", "\n")))


def _read_part(match: re.Match[str]) -> str:
    if (quoted := match["quoted"]) is not None:
        if _KEPT_CARET.search(quoted.strip('"')):
            raise ValueError(f"^ in double quotes is sent as it is by cmd.exe: {_BASH}")
        return quoted
    if (special := match["special"]) is not None:
        if special == "\n":
            raise ValueError(f"a line does not end with ^: {_BASH}")
        raise ValueError(f"{special} is for the shell: give one curl command alone")
    return match["next"] or match["escaped"] or ""


def _split_arguments(line: str) -> list[str]:
    """Split a command line as Microsoft's C library does."""
    words: list[list[str]] = []
    is_open = is_quoted = False
    at = 0
    while match := _ARGUMENT_PARTS.match(line, at):
        at = match.end()
        text = match["plain"] or match["gap"]
        if match["gap"] and not is_quoted:
            is_open = False
            continue
        if text and text.startswith("\\\\"):
            raise ValueError(f"\\\\ is sent as two by curl.exe, though browsers write it for one: {_BASH}")
        if text is None:
            count = len(match["slashes"])
            text = "\\" * (count // 2)
            if count % 2:
                text += '"'
            elif is_quoted and line.startswith('"', at):  # a quote that is doubled
                text += '"'
                at += 1
            else:
                is_quoted = not is_quoted
        if not is_open:
            words.append([])
        is_open = True
        words[-1].append(text)
    if is_quoted:
        raise ValueError("a quote is not closed")
    return ["".join(parts) for parts in words]

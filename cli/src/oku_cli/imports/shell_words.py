r"""Splits a command as bash does, as far as commands are pasted: quotes, $'…', backslashes, line ends.

Nothing is expanded: a variable or a command in it is refused, because its value is not known here.
"""

import re

_WORD_PARTS = re.compile(
    r"""
    (?P<gap>(?:[ \t\r\n]++|\\\r?\n)++)
  | '(?P<single>[^']*)'
  | \$'(?P<ansi>[^'\\]*+(?:\\.[^'\\]*+)*+)'
  | \$?"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
  | \\(?P<escaped>.)
  | (?P<plain>[^\s'"\\$`|&;<>()]+)
  | (?P<dollar>\$(?![\w{(]))
    """,
    re.VERBOSE | re.DOTALL,
)
_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_ANSI_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_DOUBLE = re.compile(r"\\(\n|[\\\"$`])")
_EXPANDED = re.compile(r"(?<!\\)(?:\\\\)*(\$[\w{(]|`)")


def split_words(command: str) -> list[str]:
    """Split a command into words.

    Raises:
        ValueError: a quote is not closed, or something would be expanded or run by a shell.
    """
    words: list[list[str]] = []
    is_open, at = False, 0
    command = command.strip()
    while at < len(command):
        match = _WORD_PARTS.match(command, at)
        if match is None:
            raise ValueError(_describe_fault(command[at:]))
        at = match.end()
        if match["gap"] is not None:
            is_open = False
            continue
        if not is_open:
            words.append([])
        words[-1].append(_read(match))
        is_open = True
    return ["".join(parts) for parts in words]


def _read(match: re.Match[str]) -> str:
    if match["ansi"] is not None:
        return _ANSI.sub(_read_ansi, match["ansi"])
    if (double := match["double"]) is not None:
        if found := _EXPANDED.search(double):
            raise ValueError(f"{found[1]} in double quotes stands for something that only the shell knows")
        return _DOUBLE.sub(lambda each: each[1].replace("\n", ""), double)
    return next(
        text
        for text in (match["single"], match["escaped"], match["plain"], match["dollar"])
        if text is not None
    )


def _read_ansi(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal:
        code = int(hexadecimal, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError(f"{match[0]} is not a character")
        return chr(code)
    if match[4]:
        return chr(int(match[4], 8) & 0xFF)
    return _ANSI_LETTERS.get(match[5], match[5] if match[5] in "\\'\"?" else match[0])


def _describe_fault(rest: str) -> str:
    if rest[0] in "'\"" or rest.startswith("$'"):
        return "a quote is not closed"
    if rest[0] in "$`":
        return f"{rest.split(maxsplit=1)[0][:20]} stands for something that only the shell knows"
    if rest == "\\":
        return "it ends with a backslash"
    return f"{rest[0]} is for the shell: give one curl command alone"

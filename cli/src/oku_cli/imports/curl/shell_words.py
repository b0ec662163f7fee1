r"""Splits a command into words as bash does, or as cmd.exe does if it was copied for that.

Nothing is expanded: a variable or a command in it is refused, because its value is not known here.
"""

import re

from oku_cli.imports.curl.windows_words import split_windows_words

_WORD_PARTS = re.compile(
    r"""
    (?P<gap>(?:[ \t\r\n]++(?:\#[^\n]*+)?)++)
  | (?P<joined>\\\r?\n)
  | '(?P<single>[^']*)'
  | \$'(?P<ansi>[^'\\]*+(?:\\.[^'\\]*+)*+)'
  | \$?"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
  | \\(?P<escaped>.)
  | (?P<plain>[^\s'"\\$`|&;<>()]+)
  | (?P<dollar>\$(?![\w{(\[$!?*@#-]))
    """,
    re.VERBOSE | re.DOTALL,
)
_CARET_ENDS = ('"', "\n", "\r\n")
"""Characters after the first caret of a word that is meant for cmd.exe."""
_ANSI = re.compile(
    r"""
    (?P<bytes>(?:\\x[0-9A-Fa-f]{1,2}|\\[0-7]{1,3})+)
  | (?P<units>(?:\\u[0-9A-Fa-f]{1,4}|\\U[0-9A-Fa-f]{1,8})+)
  | \\c(?P<control>[@-_a-z?])
  | \\(?P<letter>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ANSI_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_DOUBLE = re.compile(r"\\(\n|[\\\"$`])")
_EXPANDED = re.compile(r"(?<!\\)(?:\\\\)*(\$[\w{(\[$!?*@#-]|`)")


def split_words(command: str) -> list[str]:
    """Split a command into words.

    Raises:
        ValueError: a quote is not closed, or something would be expanded or run by a shell.
    """
    matches: list[re.Match[str]] = []
    at = 0
    command = command.strip()
    while at < len(command):
        match = _WORD_PARTS.match(command, at)
        if match is None:
            raise ValueError(_describe_fault(command[at:]))
        at = match.end()
        is_first = not matches or matches[-1]["gap"] is not None
        if is_first and match["plain"] == "^" and command.startswith(_CARET_ENDS, at):
            return split_windows_words(command)
        matches.append(match)
    return _join(matches)


def _join(matches: list[re.Match[str]]) -> list[str]:
    words: list[list[str]] = []
    is_open = is_over = False
    for match in matches:
        if match["joined"] is not None:
            continue
        if match["gap"] is not None:
            is_open, is_over = False, is_over or "\n" in match["gap"]
            continue
        if is_over:
            raise ValueError("the command ends with its line: end a line that goes on with a backslash")
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
    """The text of escapes in `$'…'`; bytes side by side are UTF-8, and browsers write halves of UTF-16."""
    if match["letter"]:
        return _ANSI_LETTERS.get(match["letter"], match[0])
    try:
        if match["bytes"]:
            codes = match["bytes"].split("\\")[1:]
            text = bytes(
                int(each[1:], 16) if each[0] == "x" else int(each, 8) & 0xFF for each in codes
            ).decode()
        elif match["units"]:
            units = "".join(chr(int(code, 16)) for code in match["units"].replace("U", "u").split("\\u")[1:])
            text = units.encode("utf-16", "surrogatepass").decode("utf-16")
        else:
            control = match["control"].upper()
            text = "\x7f" if control == "?" else chr(ord(control) & 0x1F)
    except (ValueError, OverflowError):
        raise ValueError(f"{match[0]} is not text in UTF-8") from None
    if "\0" in text:
        raise ValueError(f"{match[0]} has a NUL, where bash ends the word")
    return text


def _describe_fault(rest: str) -> str:
    if rest[0] in "'\"" or rest.startswith("$'"):
        return "a quote is not closed"
    if re.match("`\\s", rest):
        return "` at the end of a line is for PowerShell: copy the command as cURL (bash)"
    if rest[0] in "$`":
        return f"{rest.split(maxsplit=1)[0][:20]} stands for something that only the shell knows"
    if rest == "\\":
        return "it ends with a backslash"
    return f"{rest[0]} is for the shell: give one curl command alone"

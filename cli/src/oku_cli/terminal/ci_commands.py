"""Keeps foreign text from being a command for a CI system, which reads commands in the output of its jobs.

A mark is what such a command begins with: `##vso[` of Azure, `##[` of Azure and GitHub and `##teamcity[`
anywhere in a line, `::` of GitHub and headings of Buildkite, such as `--- Tests`, at its beginning. Sections
of GitLab need control characters, which `printable` shows as signs. In text, one character of a mark is
replaced; a document for programs has an escape for it and means the same.
"""

import re
from collections.abc import Callable

_REPLACEMENT = "?"
_UNSEEN = r"[\u00ad\u034f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff]"
"""Characters that .NET passes over when it compares text, as the runners of Azure and GitHub do."""
_STYLE = r"\x1b\[[0-9;?]*+[A-Za-z]"
_SKIPPED = f"(?:{_UNSEEN}|{_STYLE})*+"
_BLANK = r"[^\S\r\n]"
_BEGIN = r"(?<![^\r\n])"
_HEADING = "|".join(_SKIPPED.join([sign] * 3) for sign in ("-", "[+]", "~", r"\^"))
_ANYWHERE = rf"#{_SKIPPED}#{_SKIPPED}(?:[A-Za-z.]{_SKIPPED}){{0,20}}+\["
_MARK = re.compile(
    f"{_ANYWHERE}"
    f"|{_BEGIN}(?:{_UNSEEN}|{_STYLE}|{_BLANK})*+:{_SKIPPED}:"
    f"|{_BEGIN}{_SKIPPED}(?P<heading>{_HEADING}){_SKIPPED}{_BLANK}"
)
_MARK_OF_ANY_LINE = re.compile(f"{_ANYWHERE}|:{_SKIPPED}:|{_HEADING}")
_LONGEST_KEPT = 200


def defuse(text: str, written: str = "") -> str:
    """Replace one character of each mark; the length stays.

    Args:
        text: any text.
        written: the text before it in its first line, which is written already.
    """
    whole = _MARK.sub(lambda found: _replace(found, lambda _: _REPLACEMENT, len(written)), written + text)
    return whole[len(written) :]


def escape_marks(document: str, escape: Callable[[str], str]) -> str:
    """Replace one character of each mark by its escape in a document of this kind."""
    return _MARK.sub(lambda found: _replace(found, escape), document)


def escape_marks_in_markup(document: str) -> str:
    """Replace one character of each mark by a character reference of HTML and XML."""
    return escape_marks(document, lambda character: f"&#{ord(character)};")


def has_mark(text: str) -> bool:
    """Whether a text has a mark, or would have one if it were broken into lines."""
    return bool(_MARK_OF_ANY_LINE.search(text))


def keep_line(written: str) -> str:
    """Return the unfinished last line, in which a mark may still continue."""
    line = written[max(written.rfind("\n"), written.rfind("\r")) + 1 :]
    if len(line) <= _LONGEST_KEPT:
        return line
    end = line[-_LONGEST_KEPT:]
    return end if line.isspace() else f"x{end}"


def _replace(found: re.Match[str], escape: Callable[[str], str], start: int = 0) -> str:
    """A mark without its last character from `start` on; the blank after a heading is left if it can be."""
    place = max(found.end("heading" if found["heading"] else 0) - 1, start) - found.start()
    return f"{found[0][:place]}{escape(found[0][place])}{found[0][place + 1 :]}"

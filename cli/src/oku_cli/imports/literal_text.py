"""Writes text of others so that a spec means it literally, and remembers where it looked like a placeholder.

The text of a site, of an answer or of an example is not its reader's. If `{env:NAME}` in it became a
placeholder, running the spec would send a variable of that reader to the site.
"""

import re
from collections.abc import Iterator

from oku_core.spec.values.template import escape_literally

_PARTS = re.compile(r"(\{(?:i|(?:env|file|literal):[^{}]*)\})")
_MOST_NAMED = 5


class LiteralText:
    """Escapes texts, and remembers where."""

    def __init__(self) -> None:
        self._places: dict[str, None] = {}

    def write(self, text: str, place: str) -> str:
        """A text of a header or a body.

        Args:
            text: as it is to be sent.
            place: where it is, for people.
        """
        written = escape_literally(text)
        if written != text:
            self._places[place] = None
        return written

    def write_url(self, text: str) -> str:
        """A part of a URL; braces without a meaning are percent-encoded, as a spec has them."""
        parts = _PARTS.split(text)
        parts[::2] = map(encode_braces, parts[::2])
        parts[1::2] = [self.write(part, "URLs") for part in parts[1::2]]
        return "".join(parts).replace(" ", "%20").replace("|", "%7C")

    def describe(self) -> Iterator[str]:
        """Say in one line where text was escaped; nothing if none was."""
        if not self._places:
            return
        named = ", ".join([*self._places][:_MOST_NAMED])
        more = f" and {rest} more" if (rest := len(self._places) - _MOST_NAMED) > 0 else ""
        what = "Text that looks like a placeholder is sent literally, because {literal:…} means {…}"
        yield f"{what}: in {named}{more}."


def encode_braces(text: str) -> str:
    """A part of a URL without braces."""
    return text.replace("{", "%7B").replace("}", "%7D")

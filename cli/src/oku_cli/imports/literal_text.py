"""Writes text of others so that a spec means it literally, and counts what would have been a placeholder.

The text of a site, of an answer or of an example is not its reader's. If `{env:NAME}` in it became a
placeholder, running the spec would send a variable of that reader to the site.
"""

import re
from collections import Counter
from collections.abc import Iterator

from oku_core.spec.values.placeholder import escape_literally

_PARTS = re.compile(r"(\{(?:i|(?:env|file|literal):[^{}]*)\})")
_MOST_NAMED = 5


class LiteralText:
    """Escapes texts, and remembers where."""

    def __init__(self) -> None:
        self._escaped: Counter[str] = Counter()

    def write(self, text: str, place: str) -> str:
        """A text of a header or a body.

        Args:
            text: as it is to be sent.
            place: where it is, for people.
        """
        written, count = escape_literally(text)
        if count:
            self._escaped[place] += count
        return written

    def write_url(self, text: str) -> str:
        """A part of a URL; braces without a meaning are percent-encoded, as a spec has them."""
        parts = _PARTS.split(text)
        parts[::2] = map(encode_braces, parts[::2])
        parts[1::2] = [self.write(part, "URLs") for part in parts[1::2]]
        return "".join(parts).replace(" ", "%20").replace("|", "%7C")

    def describe(self) -> Iterator[str]:
        """Say in one line how many placeholders were escaped and where; nothing if none was."""
        if not self._escaped:
            return
        most = self._escaped.most_common(_MOST_NAMED)
        places = [f"{count} in {place}" for place, count in most]
        if rest := self._escaped.total() - sum(count for _, count in most):
            places.append(f"{rest} elsewhere")
        total = self._escaped.total()
        what = "1 text that looks like a placeholder is"
        if total > 1:
            what = f"{total} texts that look like placeholders are"
        yield f"{what} sent literally, because {{literal:…}} means {{…}}: {', '.join(places)}."


def encode_braces(text: str) -> str:
    """A part of a URL without braces."""
    return text.replace("{", "%7B").replace("}", "%7D")

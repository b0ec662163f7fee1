"""How values are written where they stand, so that none ends what it stands in or begins another."""

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import quote

URL_CHARACTERS = "/%:@!$&'()*+,;=?[]{}"
"""What a path or query may have as it is written, beside letters, digits and `-._~` (RFC 3986, section 2)."""
CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What the value of a header may not have (RFC 9110, section 5.5)."""


class Escape(NamedTuple):
    """How a value is written in one kind of place.

    Attributes:
        concerns: finds what can't stand there as it is.
        escape: writes a value that has it.
    """

    concerns: re.Pattern[str]
    escape: Callable[[str], str]

    def write_all(self, values: Sequence[str]) -> Sequence[str]:
        """Write values; those that need nothing cost next to nothing."""
        if self.concerns.search("".join(values)) is None:
            return values
        return [self.escape(value) if self.concerns.search(value) else value for value in values]

    def write(self, value: str) -> str:
        """Write a value."""
        return self.escape(value) if self.concerns.search(value) else value


def _encode_component(value: str) -> str:
    return quote(value, safe="")


def _encode_target(value: str) -> str:
    return quote(value if value.startswith("/") else f"/{value}", safe=URL_CHARACTERS)


def _encode_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _encode_header(value: str) -> str:
    return CONTROL_CHARACTER.sub(" ", value)


IN_URL = Escape(re.compile(r"[^A-Za-z0-9._~-]"), _encode_component)
"""A part of a path or a query: percent-encoded, so that it stays one part."""
AS_TARGET = Escape(re.compile(r""), _encode_target)
"""A whole path with its query, as it is; only what no URL can contain is percent-encoded."""
IN_JSON = Escape(re.compile(r'[\x00-\x1f"\\]'), _encode_json)
"""A part of a string in JSON."""
IN_HEADER = Escape(CONTROL_CHARACTER, _encode_header)
"""The value of a header, or a part of it. The scan refuses control characters; they never go out, in any
case, and are spaces instead (RFC 9110, section 5.5)."""
AS_TEXT = Escape(re.compile(r"(?!)"), str)
"""A part of a text, as it is."""

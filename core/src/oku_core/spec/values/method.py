"""The HTTP method of a request: which ones a user may write."""

import re

from oku_core.errors import format_value
from oku_core.spec.values.scalar import parse_text


def parse_method(value: object) -> str:
    """Parse a method of HTTP, in capital letters; CONNECT asks for a tunnel, which is not a request."""
    method = parse_text(value)
    if not re.fullmatch(r"[A-Za-z]+", method) or method.upper() == "CONNECT":
        raise ValueError(f"{format_value(value)} is not a method such as GET or POST")
    return method.upper()

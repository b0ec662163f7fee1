"""The names of runs and targets: which ones a user may write."""

from oku_core.errors import format_value
from oku_core.spec.values.scalar import parse_text

LONGEST_NAME = 100
"""In characters."""


def parse_name(value: object) -> str:
    """Parse one line of printable characters, which may be empty."""
    name = parse_text(value)
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"{format_value(name)} is not a name of up to {LONGEST_NAME} printable characters")
    return name

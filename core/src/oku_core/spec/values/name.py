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


def parse_names(value: object) -> tuple[str, ...]:
    """Parse several of them, none of them empty, or one; each counts once."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    names = dict.fromkeys(map(parse_name, items))
    if "" in names:
        raise ValueError("a name is empty")
    return tuple(names)

"""Parses single values from flags, YAML and JSON: text, or what YAML has read as a number."""

import re

from oku_core.errors import format_value

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse_text(value: object) -> str:
    """Return any text that can be sent as it is.

    Raises:
        ValueError: the value is not text, or UTF-8 cannot encode it.
    """
    if not isinstance(value, str):
        hint = ", put it in quotes" if isinstance(value, int | float) else ""
        raise ValueError(f"{format_value(value)} is not text{hint}")  # noqa: TRY004  # the input is wrong, not the call
    if _SURROGATE.search(value):
        raise ValueError(f"{format_value(value)} has characters that UTF-8 cannot encode")
    return value


def parse_scalar(value: object) -> str:
    """Return text as it is, and a number as text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else parse_text(value)


def list_values(value: object) -> list[object]:
    """Return the values of a list; a single value counts as a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]

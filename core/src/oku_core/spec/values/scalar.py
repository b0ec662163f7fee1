"""Parses single values from flags, YAML and JSON: text, or what YAML has read as a number."""

import re

import msgspec

from oku_core.errors import format_value

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class PlainScalar(str):
    """A scalar that stands in a YAML file without quotes: where JSON is written, it may be a number."""

    __slots__ = ()


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


def read_json_value(value: object) -> object:
    """Return what a user wrote as JSON: mappings, lists, text, and numbers that stand without quotes.

    Raises:
        ValueError: it cannot be written as JSON.
    """
    if isinstance(value, PlainScalar) and _NUMBER.fullmatch(value):
        return msgspec.json.decode(str(value))
    if isinstance(value, str):
        return str(parse_text(value))
    if isinstance(value, dict):
        return {str(parse_text(key)): read_json_value(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [read_json_value(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError(f"{format_value(value)} cannot be written as JSON")

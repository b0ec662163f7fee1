"""Parses single values from flags, YAML and JSON: text, numbers as YAML reads them, names, HTTP methods."""

import math
import re
from collections.abc import Mapping

from oku_core.errors import format_value
from oku_core.json_reader import MOST_DIGITS

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DEEPEST_JSON = 32
"""Levels of lists and mappings, more than the requests of any API have."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class PlainScalar(str):
    """A scalar that stands in a YAML file without quotes: where JSON is written, it may be a number."""

    __slots__ = ()


def parse_text(value: object) -> str:
    """Return any text that can be sent as it is, as a plain `str`.

    Raises:
        ValueError: the value is not text, or UTF-8 cannot encode it.
    """
    if not isinstance(value, str):
        hint = ", put it in quotes" if isinstance(value, int | float) else ""
        raise ValueError(f"{format_value(value)} is not text{hint}")  # noqa: TRY004  # the input is wrong, not the call
    if _SURROGATE.search(value):
        raise ValueError(f"{format_value(value)} has characters that UTF-8 cannot encode")
    return str(value)


def parse_scalar(value: object) -> str:
    """Return text as it is, and a number as text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else parse_text(value)


def wrap_list(value: object) -> list[object]:
    """Return the values of a list; a single value counts as a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def list_given(value: object, what: str) -> list[object]:
    """The same; raise `ValueError` if there is none, where `what` names one of them."""
    if not (values := wrap_list(value)):
        raise ValueError(f"no {what} is given")
    return values


def read_json_value(value: object) -> object:
    """Return what a user wrote as JSON: mappings, lists, text, and numbers that stand without quotes.

    Raises:
        ValueError: it cannot be written as JSON, or is nested too deep.
    """
    return _read_json_value(value, _DEEPEST_JSON)


def _read_json_value(value: object, levels: int) -> object:
    if not levels:
        raise ValueError(f"is nested more than {_DEEPEST_JSON} deep")
    if isinstance(value, str):
        is_number = isinstance(value, PlainScalar) and _NUMBER.fullmatch(value)
        return _read_number(value) if is_number else parse_text(value)
    if isinstance(value, Mapping):
        return {parse_text(key): _read_json_value(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_read_json_value(item, levels - 1) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"{format_value(value)} cannot be written as JSON")


def _read_number(text: str) -> int | float:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{format_value(text)} has {len(text)} digits; at most {MOST_DIGITS} are allowed")
    if text.removeprefix("-").isdecimal():
        return int(text)
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{format_value(text)} is too large for a number")


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
    names = dict.fromkeys(map(parse_name, wrap_list(value)))
    if "" in names:
        raise ValueError("a name is empty")
    return tuple(names)


def parse_method(value: object) -> str:
    """Parse a method of HTTP, in capital letters; CONNECT asks for a tunnel, which is not a request."""
    method = parse_text(value)
    if not re.fullmatch(r"[A-Za-z]+", method) or method.upper() == "CONNECT":
        raise ValueError(f"{format_value(value)} is not a method such as GET or POST")
    return method.upper()

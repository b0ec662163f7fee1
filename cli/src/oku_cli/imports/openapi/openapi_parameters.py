"""Writes values of parameters by their `style` and `explode` (OpenAPI 3, after RFC 6570)."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from oku_cli.imports.openapi.schema_parts import WrittenNumber

_DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_PATH_MARKS = {"label": ".", "matrix": ";"}
_RESERVED = "/?:@!$'()*,;"
"""What `allowReserved` leaves as it is; the others would end a value or the query."""
_Encode = Callable[[str], str]


def write_path(name: str, value: Any, parameter: Mapping[str, Any]) -> str:
    """The part of a path that stands for a parameter."""
    style = str(parameter.get("style", "simple"))
    mark = _PATH_MARKS.get(style, "")
    label = f"{quote(name, safe='')}=" if style == "matrix" else ""
    items = _expand(label, value, partial(quote, safe=""), is_exploded=bool(parameter.get("explode")))
    return mark + (mark or ",").join(items)


def write_query(name: str, value: Any, parameter: Mapping[str, Any]) -> list[str]:
    """The pairs of a query that stand for a parameter."""
    style = str(parameter.get("style", "form"))
    encode = partial(quote, safe=_RESERVED if parameter.get("allowReserved") else ":")
    if style == "deepObject" and isinstance(value, Mapping):
        return [
            f"{quote(f'{name}[{key}]', safe='')}={encode(write_text(each))}" for key, each in value.items()
        ]
    is_exploded = bool(parameter.get("explode", style == "form"))
    label = f"{quote(name, safe='')}="
    return _expand(label, value, encode, is_exploded=is_exploded, between=_DELIMITERS.get(style, ","))


def write_header(value: Any, parameter: Mapping[str, Any]) -> str:
    """The value of a header that is a parameter."""
    return ",".join(_expand("", value, str, is_exploded=bool(parameter.get("explode"))))


def write_cookies(name: str, value: Any, parameter: Mapping[str, Any]) -> str:
    """The cookies that stand for a parameter."""
    is_exploded = bool(parameter.get("explode", True))
    return "; ".join(_expand(f"{name}=", value, str, is_exploded=is_exploded))


def list_fields(name: str, value: Any) -> list[tuple[str, str]]:
    """The fields of a form that a value stands for: of a list, one for each of its items."""
    return [(name, write_text(each)) for each in (value if isinstance(value, list) else [value])]


def write_text(value: Any) -> str:
    """One value as text: JSON for anything but text."""
    if isinstance(value, str):
        return value
    if isinstance(value, WrittenNumber):
        return value.text
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _expand(label: str, value: Any, encode: _Encode, *, is_exploded: bool, between: str = ",") -> list[str]:
    """The items that stand for a value: one, or one for each of its parts.

    Args:
        label: begins each item, but not the items of an object.
        value: of a parameter.
        encode: writes a name or a text.
        is_exploded: whether each part is an item.
        between: stands between the parts of one item.
    """
    if isinstance(value, Mapping):
        pairs = [(encode(str(key)), encode(write_text(each))) for key, each in value.items()]
        if is_exploded:
            return ["=".join(pair) for pair in pairs]
        parts = [part for pair in pairs for part in pair]
    elif isinstance(value, list):
        parts = [encode(write_text(each)) for each in value]
        if is_exploded:
            return [label + part for part in parts]
    else:
        parts = [encode(write_text(value))]
    return [label + between.join(parts)]

"""What an answer must be like beside its status, as users write it: patterns, JSON values and sizes."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec

from oku_core.errors import format_value
from oku_core.spec.values.header import Header, parse_headers
from oku_core.spec.values.quantity import parse_size
from oku_core.spec.values.scalar import list_values, parse_scalar, parse_text, read_json_value

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "=": operator.eq, "": operator.eq,
}  # fmt: skip
_SIZE = re.compile(r"(<=|>=|<|>|=|)\s*(.+)")
# RFC 6901, section 3: ~ stands only before 0 and 1.
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")
_MISSING = object()


class Pattern(str):
    """A regular expression; as a string, it is the text that the user wrote.

    Attributes:
        search: looks for it anywhere in some bytes; None if it is not there.
    """

    __slots__ = ("search",)
    search: Callable[[bytes], object]

    def __new__(cls, text: str) -> Self:
        """Compile the text; raise `ValueError` if it is not a regular expression of Python's `re`."""
        try:
            compiled = re.compile(text.encode())
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{format_value(text)} is not a regular expression: {error}") from error
        pattern = super().__new__(cls, text)
        pattern.search = compiled.search
        return pattern


class JsonValue(str):
    """A JSON pointer (RFC 6901) and the value that must stand there; as a string, it is `/pointer=value`.

    Attributes:
        pointer: where the value stands.
        value: what it must be equal to.
    """

    __slots__ = ("_keys", "pointer", "value")
    pointer: str
    value: Any
    _keys: tuple[str, ...]

    def __new__(cls, text: str) -> Self:
        """Parse `/pointer=value`; a value that is not JSON is text. Raise `ValueError` for anything else."""
        pointer, equals, written = text.partition("=")
        if not equals or not _POINTER.fullmatch(pointer):
            raise ValueError(f"{format_value(text)} is not a JSON pointer and its value, such as /user/id=17")
        json_value = super().__new__(cls, text)
        json_value.pointer = pointer
        json_value._keys = tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])
        try:
            json_value.value = msgspec.json.decode(written)
        except msgspec.DecodeError:
            json_value.value = written
        return json_value

    def is_in(self, document: object) -> bool:
        """Whether the value stands in a JSON document; true and 1 are different, 1 and 1.0 are equal."""
        found = document
        for key in self._keys:
            if isinstance(found, Mapping):
                found = found.get(key, _MISSING)
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                return False
        return found == self.value and isinstance(found, bool) == isinstance(self.value, bool)


class SizeBound(str):
    """A bound of the size of a body; as a string, it is the text that the user wrote: `<= 10kB`, `0`.

    Attributes:
        compare: compares a size with the bound.
        size: the bound, in bytes.
    """

    __slots__ = ("compare", "size")
    compare: Callable[[int, int], bool]
    size: int

    def __new__(cls, text: str) -> Self:
        """Parse a comparison and a size; raise `ValueError` for anything else."""
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{format_value(text)} is not a size such as 1kB, > 0 or <= 10kB")
        bound = super().__new__(cls, text)
        bound.compare, bound.size = _COMPARISONS[match[1]], parse_size(match[2])
        return bound

    def holds(self, size: int) -> bool:
        """Whether a body of so many bytes is within the bound."""
        return self.compare(size, self.size)


def parse_contained(value: object) -> tuple[str, ...]:
    """Parse texts that a body must contain: one or a list."""
    texts = tuple(parse_scalar(item) for item in list_values(value))
    if not all(texts):
        raise ValueError("is empty; every body contains that")
    return tuple(map(str, texts))


def parse_patterns(value: object) -> tuple[Pattern, ...]:
    """Parse regular expressions that a body must match anywhere: one or a list."""
    return tuple(Pattern(str(parse_scalar(item))) for item in list_values(value))


def parse_json_values(value: object) -> tuple[JsonValue, ...]:
    """Parse JSON pointers with values: `/id=17`, a list of them, or a mapping of pointers to values."""
    if isinstance(value, Mapping):
        return tuple(
            JsonValue(f"{parse_text(pointer)}={msgspec.json.encode(read_json_value(content)).decode()}")
            for pointer, content in value.items()
        )
    return tuple(JsonValue(str(parse_text(item))) for item in list_values(value))


def parse_expected_headers(value: object) -> tuple[Header, ...]:
    """Parse headers that an answer must have: `Name: value`, or `Name:` if any value will do."""
    return parse_headers(value)


def parse_sizes(value: object) -> tuple[SizeBound, ...]:
    """Parse bounds of the size of a body: one or a list."""
    return tuple(SizeBound(str(parse_scalar(item))) for item in list_values(value))

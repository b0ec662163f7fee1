"""Parses the checks of responses: expected statuses, text, JSON values, headers and sizes."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import msgspec

from oku_core.errors import format_value
from oku_core.json_reader import JsonError, JsonLimitError, decode_json
from oku_core.spec.values.quantity import parse_size
from oku_core.spec.values.request_content import Header, parse_headers
from oku_core.spec.values.scalar import list_given, parse_scalar, parse_text, read_json_value

_STATUS = re.compile(r"[1-5](xx|[0-9][0-9])")


class ExpectedStatus(str):
    """A status code or a class of them; as a string, it is the text that the user wrote.

    Attributes:
        codes: the status codes that the text stands for.
    """

    __slots__ = ("codes",)
    codes: range

    def __new__(cls, text: str) -> Self:
        """Parse `200` or `2xx`; raise `ValueError` for anything else."""
        if not _STATUS.fullmatch(text):
            raise ValueError(f"{format_value(text)} is not a status such as 200 or 2xx")
        status = super().__new__(cls, text)
        status.codes = (
            range(int(text[0]) * 100, int(text[0]) * 100 + 100)
            if text.endswith("xx")
            else range(int(text), int(text) + 1)
        )
        return status


def parse_expect_status(value: object) -> tuple[ExpectedStatus, ...]:
    """Parse status codes and classes, given as a list or separated by commas: `200,404`, `2xx`."""
    texts = map(parse_scalar, list_given(value, "status"))
    return tuple(ExpectedStatus(part.strip().lower()) for text in texts for part in text.split(","))


def list_codes(statuses: Iterable[ExpectedStatus]) -> frozenset[int]:
    """The status codes that count as `ok`."""
    return frozenset(code for status in statuses for code in status.codes)


_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "=": operator.eq, "": operator.eq,
}  # fmt: skip
"""By operator; one that is a prefix of another comes after it."""
_LONGEST_PLACE = 100
"""The longest JSON pointer and name of a header, in characters; the reason of a failed check has it in it."""
# RFC 6901, section 3: ~ stands only before 0 and 1.
_POINTER = re.compile(r"(?:/[^/~]*+(?:~[01][^/~]*+)*+)*+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_MISSING = object()


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
        if len(pointer) > _LONGEST_PLACE or not pointer.isprintable():
            raise ValueError(
                f"{format_value(pointer)} is not a pointer of up to {_LONGEST_PLACE} printable characters"
            )
        json_value = super().__new__(cls, text)
        json_value.pointer = pointer
        json_value._keys = tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])
        try:
            json_value.value = decode_json(written)
        except JsonLimitError as error:
            raise ValueError(f"{format_value(text)}: {error}") from error
        except JsonError:
            json_value.value = written
        return json_value

    def is_in(self, document: object) -> bool:
        """Whether the value stands in a JSON document; 1 and 1.0 are equal, true and 1 are not."""
        found = document
        for key in self._keys:
            if isinstance(found, Mapping):
                found = found.get(key, _MISSING)
            elif isinstance(found, list) and _INDEX.fullmatch(key) and int(key) < len(found):
                found = found[int(key)]
            else:
                return False
        return _are_equal(found, self.value)


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
        written = text.strip()
        sign = next(sign for sign in _COMPARISONS if written.startswith(sign))
        try:
            size = parse_size(written.removeprefix(sign))
        except ValueError:
            raise ValueError(f"{format_value(text)} is not a size such as 1kB, > 0 or <= 10kB") from None
        if sign == "<" and not size:
            raise ValueError(f"{format_value(text)} allows no size at all")
        bound = super().__new__(cls, text)
        bound.compare, bound.size = _COMPARISONS[sign], size
        return bound

    def holds(self, size: int) -> bool:
        """Whether a size in bytes is within the bound."""
        return self.compare(size, self.size)


def parse_contained(value: object) -> tuple[str, ...]:
    """Parse texts that a body must contain: one or a list."""
    texts = tuple(map(parse_scalar, list_given(value, "text")))
    if not all(texts):
        raise ValueError("'' is in every body")
    return texts


def parse_json_values(value: object) -> tuple[JsonValue, ...]:
    """Parse JSON pointers with values: `/id=17`, a list of them, or a mapping of pointers to values."""
    if isinstance(value, Mapping):
        value = [_write_json_value(parse_text(pointer), item) for pointer, item in value.items()]
    return tuple(JsonValue(parse_text(item)) for item in list_given(value, "JSON value"))


def parse_expected_headers(value: object) -> tuple[Header, ...]:
    """Parse headers that an answer must have: `Name: value`, or `Name:` if any value will do."""
    headers = parse_headers(value)
    if not headers:
        raise ValueError("no header is given")
    for name in (header.name for header in headers):
        if len(name) > _LONGEST_PLACE:
            raise ValueError(f"{format_value(name)} is longer than {_LONGEST_PLACE} characters")
    return headers


def parse_sizes(value: object) -> tuple[SizeBound, ...]:
    """Parse bounds of the size of a body: one or a list."""
    return tuple(SizeBound(parse_scalar(item)) for item in list_given(value, "size"))


def _write_json_value(pointer: str, value: object) -> str:
    if "=" in pointer:
        # In text, the value begins after the first =.
        raise ValueError(f"{format_value(pointer)} has a = in it, which is not supported")
    try:
        written = msgspec.json.encode(read_json_value(value)).decode()
    except ValueError as error:
        raise ValueError(f"{format_value(pointer)}: {error}") from error
    return f"{pointer}={written}"


def _are_equal(found: object, value: object) -> bool:
    """Whether two JSON values are equal, for which Python takes true for 1."""
    if isinstance(found, Mapping) and isinstance(value, Mapping):
        return found.keys() == value.keys() and all(_are_equal(found[key], value[key]) for key in value)
    if isinstance(found, list) and isinstance(value, list):
        return len(found) == len(value) and all(map(_are_equal, found, value))
    return found == value and isinstance(found, bool) == isinstance(value, bool)

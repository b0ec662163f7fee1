"""Reads JSON within limits. No other module decodes JSON, so the limits hold for all text from outside.

RFC 8259 lets the reader decide what a repeated name means, how large a number may be and how deep values may
be nested. Anything that is refused raises a `JsonError` of one line, even if it exhausts the parser's stack.

| written by | reader | repeated names | deepest |
| --- | --- | --- | --- |
| users: specs, calls of the API, results of hooks | `decode_json` | are refused | `DEEPEST` |
| other programs, such as browsers and brokers | `decode_document` | the last counts | `DEEPEST` |
| targets, in the hot path | `decode_answer` | the last counts | the stack |
| Oku, or anyone who can send in its place | `JsonDecoder` of a type | the last counts | the type |
| Oku alone: columns of the ledger | `build_own_decoder` of a type | | |
"""

import json
import math
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from oku_core.errors import format_value

_T = TypeVar("_T")

MOST_DIGITS = 400
DEEPEST = 100
"""Levels of lists and objects; the body of a target may have 32."""


class JsonError(ValueError):
    """A text is not JSON, or exceeds a limit; the message is one line without a subject."""


class JsonLimitError(JsonError):
    """A text may be JSON, but exceeds a limit or gives a key twice."""


class JsonTypeError(JsonError):
    """A text is JSON, but not of the type that is wanted."""


def decode_json(content: bytes | str) -> Any:
    """Decode what a user wrote.

    Raises:
        JsonError: the text is not JSON, gives a key twice, is nested more than `DEEPEST` deep, or has a
            number with more than `MOST_DIGITS` digits, or one that is too large.
    """
    return _load(content, _build_object)


def decode_document(content: bytes | str) -> Any:
    """Decode what a program wrote; it may begin with a byte order mark.

    Raises:
        JsonError: as `decode_json`, except for keys that are given twice.
    """
    return _load(content, None)


def decode_answer(content: bytes) -> Any:
    """Decode what a target has sent; it may begin with a byte order mark.

    Raises:
        JsonError: it is not JSON.
    """
    try:
        return _decode_any(content)
    except (ValueError, RecursionError) as error:
        if not content.startswith(BOM_UTF8):
            raise _build_error(error) from error
    return _any_decoder.decode(content[len(BOM_UTF8) :])


class JsonDecoder(Generic[_T]):
    """Decodes values of one type; names that are not its fields are ignored.

    Args:
        kind: the type.
        dec_hook: builds what msgspec does not know.
    """

    __slots__ = ("_decode",)

    def __init__(self, kind: Any, dec_hook: Callable[[type, Any], Any] | None = None) -> None:
        decode: Callable[[bytes | str], _T] = msgspec.json.Decoder(kind, dec_hook=dec_hook).decode
        self._decode = decode

    def decode_each(self, contents: Iterable[bytes]) -> Iterator[_T]:
        """Decode many values; errors as of `decode`."""
        decode = self._decode
        try:
            for content in contents:
                yield decode(content)
        except (ValueError, RecursionError) as error:
            raise _build_error(error) from error

    def decode(self, content: bytes | str) -> _T:
        """Decode a value.

        Raises:
            JsonTypeError: it is of another type.
            JsonError: the text is not JSON.
        """
        try:
            return self._decode(content)
        except (ValueError, RecursionError) as error:
            raise _build_error(error) from error


def build_own_decoder(kind: Any) -> Callable[[bytes | str], Any]:
    """A decoder without limits, for what only Oku can have written."""
    return msgspec.json.Decoder(kind).decode


def check_depth(content: bytes) -> None:
    """Refuse a JSON text that is nested more than `DEEPEST` deep.

    Raises:
        JsonError: it is, or it is not JSON.
    """
    # Fewer brackets cannot be nested so deep.
    if content.count(b"[") + content.count(b"{") > DEEPEST:
        _check_depth(_any_decoder.decode(content))


_any_decoder: JsonDecoder[Any] = JsonDecoder(Any)
_decode_any = msgspec.json.Decoder(Any).decode


def _load(content: bytes | str, build_object: Callable[[list[tuple[str, Any]]], Any] | None) -> Any:
    text = content
    try:
        if isinstance(content, bytes):
            text = content.decode(json.detect_encoding(content))
        value = json.loads(
            text,
            object_pairs_hook=build_object,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
    except JsonError:
        raise
    except (ValueError, RecursionError) as error:
        raise _build_error(error) from error
    _check_depth(value)
    return value


def _build_error(error: Exception) -> JsonError:
    if isinstance(error, msgspec.ValidationError):
        return JsonTypeError(str(error))
    if isinstance(error, RecursionError):
        return JsonLimitError("is nested too deep")
    return JsonError("is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"is not JSON: {error}")


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [each for container in level for each in _list_containers(container)]
        if not level:
            return
    raise JsonLimitError("is nested too deep")


def _list_containers(container: Any) -> list[Any]:
    """The lists and objects directly within a value."""
    if not isinstance(container, (dict, list)):
        return []
    values = container.values() if isinstance(container, dict) else container
    return [each for each in values if isinstance(each, (dict, list))]


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonLimitError(f"{format_value(key)}: is given twice")
    return values


def _parse_int(digits: str) -> int:
    # Python refuses more than 4300 digits with a message of its own, and is slow with fewer.
    if len(digits) > MOST_DIGITS:
        raise JsonLimitError(f"a number has {len(digits)} digits; at most {MOST_DIGITS} are allowed")
    return int(digits)


def _parse_float(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise JsonLimitError(f"{format_value(text)} is too large for a number")


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"is not JSON: {name} is not a number")

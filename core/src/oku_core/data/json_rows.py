"""Tables in JSON lines: one object on each line, whose keys are the columns.

A string is its text; of anything else, the JSON that stands in the file is the value: `1.50` stays `1.50`.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import astuple

from oku_core.data.data_format import MOST_COLUMNS, WHOLE_ROW, LineError, is_column_name
from oku_core.json_reader import JsonDecoder, JsonError, JsonTypeError, check_depth

_OBJECT: JsonDecoder[dict[str, msgspec.Raw]] = JsonDecoder(dict[str, msgspec.Raw])
_TEXT: JsonDecoder[str] = JsonDecoder(str)
_QUOTE = b'"'


def find_lines_end(content: bytes) -> int:
    """The end of the last whole line in `content`; 0 without a whole line."""
    return content.rfind(b"\n") + 1


def read_keys(line: bytes) -> tuple[str, ...]:
    """The columns of a table, by its first line: the keys that a placeholder can stand for.

    Raises:
        LineError: it is not an object, or has no such key.
    """
    try:
        keys = [key for key in _OBJECT.decode(line) if is_column_name(key)]
    except JsonError as error:
        raise LineError(0, _describe(error)) from None
    if not keys:
        raise LineError(0, "has no key of letters, digits, _, - and . that could name a column")
    if len(keys) > MOST_COLUMNS:
        raise LineError(0, f"has {len(keys)} keys, more than {MOST_COLUMNS}")
    return tuple(keys)


def parse_lines(content: bytes, columns: Sequence[str]) -> list[Sequence[bytes]]:
    """Some columns, at least one, of lines that have been checked for them, in UTF-8.

    Args:
        content: whole lines, each with its line break.
        columns: which columns.

    Raises:
        ValueError: they are no such lines.
    """
    array = b"[%b]" % content.removesuffix(b"\n").replace(b"\n", b",")
    decode_texts, decode_all = _build_decoders(tuple(columns))
    try:
        rows = decode_texts(array)
    except JsonTypeError:  # some are not strings
        return [_read_values(raws) for raws in zip(*map(astuple, decode_all(array)), strict=True)]
    return [list(map(str.encode, values)) for values in zip(*map(astuple, rows), strict=True)]


def split_lines(content: bytes) -> list[bytes]:
    """Whole lines as they are written, without their line breaks."""
    return [line.removesuffix(b"\r") for line in content.removesuffix(b"\n").split(b"\n")]


def parse_objects(content: bytes, columns: Sequence[str]) -> list[Mapping[str, str]]:
    """Some columns of whole lines, by their names; a line may lack some.

    Each line itself is there as well, as `WHOLE_ROW`, unless a column has this name.

    Raises:
        ValueError: they are no such lines.
    """
    objects: list[Mapping[str, str]] = []
    for line in split_lines(content):
        raws = _OBJECT.decode(line)
        values = {column: _read_value(raws[column]).decode() for column in columns if column in raws}
        objects.append(values if WHOLE_ROW in columns else values | {WHOLE_ROW: line.decode()})
    return objects


def find_line(content: bytes, place: int) -> bytes:
    """One of some lines, with its line break; `IndexError` if there is none."""
    return content.split(b"\n")[place] + b"\n"


class JsonRows:
    """Checks the rows of a table, each of which must have these columns."""

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = tuple(columns)
        self._rows = JsonDecoder[Any](_build_row(self._columns, msgspec.Raw))

    def find_starts(self, block: bytes) -> list[int]:
        """Where each of the lines of a block begins, in bytes, and where the last one ends.

        Raises:
            LineError: a line is not an object, lacks a key, or is nested too deep.
        """
        lines = block.split(b"\n")
        lines.pop()
        starts, end = [0], 0
        # Most rows are flat: counting in the whole block saves a check of each row.
        is_deep = block.count(b"{") + block.count(b"[") > len(lines)
        try:
            for line, _ in zip(lines, self._rows.decode_each(lines), strict=True):
                if is_deep:
                    check_depth(line)
                end += len(line) + 1
                starts.append(end)
        except JsonError as error:
            number = len(starts) - 1
            raise LineError(number, self._explain(lines[number], error)) from None
        return starts

    def _explain(self, line: bytes, error: JsonError) -> str:
        if not line.strip():
            return "is blank"
        if isinstance(error, JsonTypeError):
            try:
                missing = [column for column in self._columns if column not in _OBJECT.decode(line)]
            except JsonTypeError:
                missing = []
            if missing:
                return f"has no {missing[0]}"
        return _describe(error)


@lru_cache(maxsize=16)
def _build_decoders(columns: tuple[str, ...]) -> tuple[Any, Any]:
    """Functions from an array of lines to such objects, with texts for values and with undecoded ones."""
    texts, raws = (list[_build_row(columns, kind)] for kind in (str, msgspec.Raw))  # type: ignore[misc]
    return JsonDecoder[Any](texts).decode, JsonDecoder[Any](raws).decode


def _build_row(columns: Sequence[str], kind: type) -> Any:
    """A type of objects whose attributes are the values of some columns."""
    names = {f"column_{number}": column for number, column in enumerate(columns)}
    return msgspec.defstruct("Row", [(name, kind) for name in names], rename=names)


def _read_values(raws: Sequence[msgspec.Raw]) -> Sequence[bytes]:
    """The values of a column."""
    return list(map(_read_value, raws))


def _read_value(raw: msgspec.Raw) -> bytes:
    piece = bytes(raw)
    return _TEXT.decode(piece).encode() if piece.startswith(_QUOTE) else piece


def _describe(error: JsonError) -> str:
    return "is not an object" if isinstance(error, JsonTypeError) else str(error)

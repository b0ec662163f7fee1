"""Tables in CSV as RFC 4180 describes it: a header line, quotes around fields that need them, CRLF or LF.

A quotation mark may stand only around a field and, doubled, within one. So whether a line break ends a row
follows from the number of quotation marks before it, and rows are found without parsing them.
"""

import csv
import io
import re
from collections.abc import Sequence
from itertools import accumulate, compress
from operator import methodcaller
from typing import Final

from oku_core.data.data_format import LineError, check_columns

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_QUOTE = b'"'
_QUOTED = re.compile(rb'"[^"]*"')
"""A field in quotes, or a part of it between doubled quotation marks."""
_STRAY_QUOTE = re.compile(rb'[^,\n"]"|"[^,\r\n"]')
_STRAY_RETURN = re.compile(rb"\r(?!\n)")
_BLANK = re.compile(rb"(?:^|\n)\r?\n")
_count_commas = methodcaller("count", b",")
_count_quotes = methodcaller("count", _QUOTE)

# The scan bounds rows; this limit of the module is lower, and one for the whole process.
csv.field_size_limit(1 << 30)


def find_rows_end(content: bytes) -> int:
    """The end of the last whole row in `content`, which begins with a row; 0 without a whole row."""
    end = content.rfind(b"\n") + 1
    is_inside = content.count(_QUOTE, 0, end) % 2
    while end and is_inside:
        before = content.rfind(b"\n", 0, end - 1) + 1
        is_inside ^= content.count(_QUOTE, before, end) % 2
        end = before
    return end


def read_header(content: bytes) -> tuple[tuple[str, ...], int]:
    """The columns of a table, and where its first row begins.

    Args:
        content: the beginning of the file, with its whole header line and the line break after it.

    Raises:
        LineError: it is not a header line.
    """
    end = quotes = 0
    while not end or quotes % 2:
        before, end = end, content.find(b"\n", end) + 1
        if not end:
            raise LineError(0, "has a quotation mark that is not closed")
        quotes += content.count(_QUOTE, before, end)
    head = content[:end].removeprefix(BYTE_ORDER_MARK)
    _check_bare(_strip_quoted(head))
    try:
        return check_columns(parse_rows(head)[0]), end
    except UnicodeDecodeError:
        raise LineError(0, "is not UTF-8") from None
    except ValueError as error:
        raise LineError(0, str(error)) from None


def parse_rows(content: bytes) -> list[list[str]]:
    """The fields of rows that have been checked; the last may lack its line break."""
    text = content.decode()
    if _QUOTE in content:
        return list(csv.reader(io.StringIO(text, newline="")))
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r").split(",") for line in lines]


def parse_columns(content: bytes, places: Sequence[int], width: int) -> list[Sequence[bytes]]:
    """Some columns of rows that have been checked, in UTF-8.

    Args:
        content: whole rows, each with its line break.
        places: which columns.
        width: how many columns the rows have.

    Raises:
        ValueError, IndexError, csv.Error: they are no such rows.
    """
    if _QUOTE in content:
        rows = parse_rows(content)
        return [[row[place].encode() for row in rows] for place in places]
    lines = content.replace(b"\r\n", b"\n") if b"\r" in content else content
    fields = lines.replace(b"\n", b",").split(b",")
    fields.pop()
    if len(fields) % width:
        raise ValueError("a row has too few fields or too many")
    return [fields[place::width] for place in places]


def find_row(content: bytes, place: int) -> bytes:
    """One of some rows that have been checked, with its line break; `IndexError` if there is none."""
    lines = content.splitlines(keepends=True)
    if _QUOTE not in content:
        return lines[place]
    quotes = accumulate(map(_count_quotes, lines), initial=0)
    starts = [number for number, count in enumerate(quotes) if not count % 2]
    return b"".join(lines[starts[place] : starts[place + 1]])


class CsvRows:
    """Checks the rows of a table."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._commas: Final = len(columns) - 1

    def find_starts(self, block: bytes) -> list[int]:
        """Where each of the rows of a block begins, in bytes, and where the last one ends.

        Args:
            block: whole rows, each with its line break.

        Raises:
            LineError: a row is not CSV, or has another number of fields than the header.
        """
        bare = _strip_quoted(block)
        lines = block.splitlines(keepends=True)
        rows = lines if bare is block else bare.splitlines(keepends=True)
        starts = list(accumulate(map(len, lines), initial=0))
        if len(rows) < len(lines):  # fields have line breaks in them
            quotes = accumulate(map(_count_quotes, lines), initial=0)
            starts = list(compress(starts, [not count % 2 for count in quotes]))
        try:
            _check_bare(bare)
            if {*map(_count_commas, rows)} != {self._commas} or (not self._commas and _BLANK.search(bare)):
                self._refuse_ragged(rows)
        except LineError as fault:
            raise LineError(block.count(b"\n", 0, starts[fault.line]), fault.reason) from None
        return starts

    def _refuse_ragged(self, rows: Sequence[bytes]) -> None:
        for number, row in enumerate(rows):
            if not row.strip(b"\r\n"):
                raise LineError(number, 'is blank; an empty value alone in its row is written ""')
            if (commas := row.count(b",")) != self._commas:
                fields = "1 field" if not commas else f"{commas + 1} fields"
                raise LineError(number, f"has {fields}, the header has {self._commas + 1}")


def _strip_quoted(block: bytes) -> bytes:
    """The block with one quotation mark or several in place of each field in quotes: a line for each row."""
    return _QUOTED.sub(_QUOTE, block) if _QUOTE in block else block


def _check_bare(bare: bytes) -> None:
    """Raise a `LineError`, which counts rows, for what RFC 4180 does not allow."""
    if _QUOTE in bare and (found := _STRAY_QUOTE.search(bare)):
        row = bare.count(b"\n", 0, found.start() + 1 - (found[0][:1] == b"\n"))
        raise LineError(
            row,
            'has a quotation mark beside a field or within one; write the field "in quotes", and "" for "',
        )
    if b"\r" in bare and (found := _STRAY_RETURN.search(bare)):
        raise LineError(bare.count(b"\n", 0, found.start()), "has a carriage return outside of quotes")

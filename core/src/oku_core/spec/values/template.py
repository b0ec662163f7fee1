"""Texts with placeholders for the index of a request and for columns of its row, taken apart once."""

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Protocol, Self

from oku_core.data.columns import INDEX_NAME
from oku_core.data.escape import AS_TEXT, Escape
from oku_core.data.row_reader import Value
from oku_core.spec.values.body_bytes import FileText, measure_body, write_body
from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER, NAMED_PLACEHOLDER, read_literally

INDEX = Value(INDEX_NAME, AS_TEXT)
"""Stands for the index of the request among the parts of a template."""


class Rows(Protocol):
    """The rows of a run, as templates read them."""

    @property
    def values(self) -> Sequence[Value]:
        """What `read` gives, in this order."""
        ...

    @property
    def read(self) -> Callable[[int], tuple[bytes, ...]]:
        """Gives the values of the row of a request, as they are written into it, in UTF-8."""
        ...


class Template:
    """A text with placeholders.

    Args:
        parts: literal text, and what stands between.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[str | Value] = ()) -> None:
        self._parts = tuple(parts)

    @classmethod
    def parse(cls, text: str, columns: Collection[str] = (), escape: Escape = AS_TEXT) -> Self:
        """Take a text apart; what stands in braces and is neither the index nor a column is text.

        `{literal:` becomes a brace.

        Args:
            text: what the user wrote.
            columns: those that placeholders may stand for.
            escape: how values are written into it.
        """
        kind = FileText if isinstance(text, FileText) else str
        if not columns:
            # A file may be full of braces that stand for nothing: to look at each would take seconds.
            texts = text.split(INDEX_PLACEHOLDER)
            pieces: list[str | Value] = [INDEX] * (2 * len(texts) - 1)
            pieces[::2] = map(read_literally, map(kind, texts))
            return cls(piece for piece in pieces if piece != "")

        pieces, reached = [], 0
        for found in NAMED_PLACEHOLDER.finditer(text):
            name = found[1]
            if name == INDEX_NAME or name in columns:
                value = INDEX if name == INDEX_NAME else Value(str(name), escape)
                pieces += (read_literally(kind(text[reached : found.start()])), value)
                reached = found.end()
        pieces.append(read_literally(kind(text[reached:])))
        return cls(piece for piece in pieces if piece != "")

    def __add__(self, other: "Template | str") -> "Template":
        """One text behind the other."""
        return Template((*self._parts, *((other,) if isinstance(other, str) else other._parts)))

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for every index."""
        return all(isinstance(part, str) for part in self._parts)

    @property
    def literal(self) -> str:
        """What of it stands there as it is."""
        return "".join(part for part in self._parts if isinstance(part, str))

    @property
    def fixed_bytes(self) -> int:
        """How many bytes stand there as they are."""
        return sum(measure_body(part) for part in self._parts if isinstance(part, str))

    @property
    def places(self) -> int:
        """How many placeholders it has."""
        return len(self._needed)

    @property
    def values(self) -> list[Value]:
        """What it needs of each row."""
        return [part for part in self._parts if isinstance(part, Value) and part is not INDEX]

    def bind(self, rows: Rows | None = None) -> Callable[[int], str]:
        """Build a function from an index to the text.

        Args:
            rows: gives all values that the template needs; None if it needs none.
        """
        if self.is_constant:
            text = self.literal
            return lambda _: text
        if rows is None or not self.values:
            pattern, places = self.build_pattern(b"%d").decode(), len(self._needed)
            return lambda index: pattern % ((index,) * places)
        build = self.bind_bytes(rows)
        return lambda index: build(index).decode()

    def bind_bytes(self, rows: Rows | None = None) -> Callable[[int], bytes]:
        """The same as `bind`, in UTF-8 or as the bytes that a file has: making it is formatting once."""
        needed = self._needed
        if not needed:
            content = self.build_pattern(is_formatted=False)
            return lambda _: content
        if rows is None or not self.values:
            pattern, places = self.build_pattern(b"%d"), len(needed)
            return pattern.__mod__ if places == 1 else lambda index: pattern % ((index,) * places)
        pattern, read = self.build_pattern(b"%b"), rows.read
        if needed == [*rows.values]:
            return lambda index: pattern % read(index)
        if INDEX not in needed:
            pick = itemgetter(*map([*rows.values].index, needed))
            return lambda index: pattern % pick(read(index))
        list_values = self.bind_values(rows)
        return lambda index: pattern % list_values(index)

    def bind_values(self, rows: Rows | None = None) -> Callable[[int], tuple[bytes, ...]]:
        """Build a function from an index to what stands in the places of the template, in their order."""
        needed = self._needed
        if rows is None or not self.values:
            places = len(needed)
            return lambda index: (b"%d" % index,) * places
        read = rows.read
        if needed == [*rows.values]:
            return read
        found = list(map([INDEX, *rows.values].index, needed))
        if len(found) == 1:
            [place] = found
            return lambda index: (read(index)[place - 1],)
        pick = itemgetter(*found)
        return lambda index: pick((b"%d" % index, *read(index)))

    @property
    def _needed(self) -> list[Value]:
        return [part for part in self._parts if isinstance(part, Value)]

    def build_pattern(self, place: bytes = b"%b", *, is_formatted: bool = True) -> bytes:
        """The template as bytes to format, with something in each place that is to be filled in."""
        pieces = [write_body(part) if isinstance(part, str) else place for part in self._parts]
        if is_formatted:
            literals = (isinstance(part, str) for part in self._parts)
            pieces = [
                piece.replace(b"%", b"%%") if is_literal else piece
                for piece, is_literal in zip(pieces, literals, strict=True)
            ]
        return b"".join(pieces)

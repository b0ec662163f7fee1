"""Texts of requests with placeholders: for the index, for columns of its row, and for secrets of the workers.

`{literal:…}` stands for a brace that begins no placeholder. A template is taken apart once and filled for
every request. The text of a file has one character for each byte, in any encoding: any file can be sent, and
its text takes as much memory as the file has bytes. In ordinary text, one wide character makes all of them
wide.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Protocol, Self

from oku_core.data.data_format import COLUMN_NAME, INDEX_NAME
from oku_core.data.escape import AS_TEXT, Escape
from oku_core.data.row_reader import Value
from oku_core.errors import format_value

_BYTES = "latin-1"
_ERRORS = "surrogateescape"


class FileText(str):
    """The bytes of a file, each as the character of that number."""

    __slots__ = ()


def read_body(content: bytes) -> FileText:
    """The text of a body that consists of these bytes."""
    return FileText(content, _BYTES)


def write_body(text: str) -> bytes:
    """The bytes of the text of a body, or of a part of it."""
    return text.encode(_BYTES) if isinstance(text, FileText) else text.encode(errors=_ERRORS)


def measure_body(text: str) -> int:
    """How many bytes `write_body` gives."""
    return len(text) if isinstance(text, FileText) else len(write_body(text))


INDEX_PLACEHOLDER = "{i}"
"""Stands for the index of the request in a URL, a header or a body."""
SECRET_PLACEHOLDER = re.compile(r"\{env:[A-Za-z_][A-Za-z0-9_]*\}|\{file:[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}\}")
"""Stands for a secret: an environment variable of the worker, or a file in its folder of secrets."""
NAMED_PLACEHOLDER = re.compile(r"\{(" + COLUMN_NAME.pattern + r")\}")
"""Stands for the index, or for a column of the data if there is one of that name."""
LITERAL_MARK = "{literal:"
"""Stands for a brace that begins no placeholder: `{literal:env:HOME}` is the text `{env:HOME}`."""
LITERAL_TEXT = re.compile(r"\{literal:[^{}]*\}")
"""A text in braces that is sent as it is."""
KNOWN_PLACEHOLDERS = "{i}, {env:NAME} and {file:NAME}"
"""All placeholders, as messages list them."""

_MEANS_SOMETHING = re.compile(r"\{(?=i\}|(?:env|file|literal):)")
_SECRET_BEGINS = re.compile(r"\{(?:env|file):[^{}\s]*\}?")


def check_secrets(text: str) -> None:
    """Raise `ValueError` if `text` contains a malformed placeholder of a secret."""
    for found in _SECRET_BEGINS.finditer(text):
        if not SECRET_PLACEHOLDER.fullmatch(found[0]):
            raise ValueError(
                f"{format_value(found[0])} is not of the form {{env:NAME}} or {{file:NAME}}; NAME may have "
                "letters, digits and _, the name of a file also . and -"
            )


def escape_literally(text: str) -> str:
    """Escape a foreign text for a spec, so that nothing in it is a placeholder."""
    return _MEANS_SOMETHING.sub(LITERAL_MARK, text)


def has_placeholders(text: str) -> bool:
    """Whether a text means something else than itself in a spec that has no columns."""
    return _MEANS_SOMETHING.search(text) is not None


def read_literally(text: str) -> str:
    """A text between placeholders, as it is sent."""
    if LITERAL_MARK not in text:
        return text
    content = text.replace(LITERAL_MARK, "{")
    return FileText(content) if isinstance(text, FileText) else content


def list_names(text: str) -> list[str]:
    """The names in braces that could name columns, in their order."""
    return [name for name in NAMED_PLACEHOLDER.findall(text) if name != INDEX_NAME]


def describe_unknown(shown: str, placeholder: str) -> str:
    """Explain that a text has an unknown placeholder."""
    return f"{shown} has the unknown placeholder {format_value(placeholder)}; Oku knows {KNOWN_PLACEHOLDERS}"


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
    """A text with placeholders."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[str | Value] = ()) -> None:
        self._parts = tuple(parts)

    @classmethod
    def parse(cls, text: str, columns: Collection[str] = (), escape: Escape = AS_TEXT) -> Self:
        """Take a text apart; braces around anything but the index or a column are text.

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
        """Its literal text."""
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
        """Build a function from an index to the values in the places of the template, in their order."""
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

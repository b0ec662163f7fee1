"""`body: @FILE`: what is in a file, or comes on standard input, is the body of a spec or of a target.

A short text goes into the spec. A longer one becomes a file of the run. A body that begins with `@` is
written with `@@`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from oku_cli.options.spec.input_file import LARGEST_BYTES, STANDARD_INPUT, STANDARD_INPUT_LABEL, read_input
from oku_cli.options.spec.named_file import find_file
from oku_cli.remote.local_file import LocalFile, read_local_file
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source
from oku_core.spec.values.request_content import MOST_BODY_BYTES, parse_body

MARK = "@"
_BODY, _TARGETS = "body", "targets"
_ROOM_BESIDE = 64 << 10
"""Of the largest spec, so many bytes are for all other keys."""


class _Place(NamedTuple):
    """Where a body stands: a source, how messages name the place, and what is told of the flag for it."""

    source: Source
    name: str
    flag: str


class BodyFiles:
    """Reads the bodies that sources name with the mark: every byte of a file, also a line break at its end.

    Attributes:
        files: what is to be uploaded.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.files: list[LocalFile] = []
        self._labels = [source.label for source in sources]
        self._room = LARGEST_BYTES - _ROOM_BESIDE

    def read(self, source: Source) -> Source:
        """The source with its body and those of its targets in place of what names them.

        Raises:
            UserError: a file cannot be read, is too large, or not one that a spec file may name.
        """
        values = dict(source.values)
        if _BODY in values:
            values[_BODY] = self._replace(_Place(source, source.place(_BODY), "--body"), values[_BODY])
        if isinstance(targets := values.get(_TARGETS), list):
            values[_TARGETS] = [
                self._read_target(source, number, target) for number, target in enumerate(targets, 1)
            ]
        return replace(source, values=values)

    def _read_target(self, source: Source, number: int, target: object) -> object:
        if not isinstance(target, Mapping) or _BODY not in target:
            return target  # `parse_spec` refuses what is no target
        place = _Place(source, f"{source.place(_TARGETS)}: {number}: {_BODY}", "")
        return {**target, _BODY: self._replace(place, target[_BODY])}

    def _replace(self, place: _Place, body: object) -> object:
        if not isinstance(body, str) or not body.startswith(MARK):
            return body
        name = body.removeprefix(MARK)
        return name if name.startswith(MARK) else self._read(place, name)

    def _read(self, place: _Place, name: str) -> str:
        label = f"{place.name}: {format_value(MARK + name)}"
        if name == STANDARD_INPUT and place.source.label is None:
            if STANDARD_INPUT_LABEL in self._labels:
                raise UserError(f"{label}: {STANDARD_INPUT_LABEL} is the spec already")
            return _decode(read_input(name, label), label)
        path = find_file(place.source, name, place.name, place.flag)
        content = read_input(path, label, MOST_BODY_BYTES)
        if (text := _find_text(content)) is not None:
            size = len(msgspec.json.encode(text))
            if size <= self._room:
                self._room -= size
                return text
            try:
                parse_body(text)
            except ValueError as error:
                raise UserError(f"{label}: {error}") from error
        file = read_local_file(path, label)
        self.files.append(file)
        return str(file.reference)


def _find_text(content: bytes) -> str | None:
    """The text of a body; None if it is none, and can only be sent as a file."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _decode(content: bytes, label: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{label}: byte {error.start} is not UTF-8") from error

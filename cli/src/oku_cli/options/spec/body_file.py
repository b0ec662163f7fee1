"""`--body @FILE`: what is in a file, or comes on standard input, is the body.

A short text goes into the spec. A longer one becomes a file of the run. Only the command line may name such
a file. A spec file may be somebody else's, and what its body named would be sent to the target that it names.
In either, a body that begins with `@` is written with `@@`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from oku_cli.options.spec.input_file import (
    LARGEST_BYTES,
    STANDARD_INPUT,
    STANDARD_INPUT_LABEL,
    expand_home,
    read_input,
)
from oku_cli.remote.local_file import LocalFile, read_local_file
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source
from oku_core.spec.values.body import MOST_BODY_BYTES, parse_body

MARK = "@"
_ROOM_BESIDE = 64 << 10
"""Of the largest spec, so many bytes are for all other keys."""


class BodyFile(NamedTuple):
    """A body that was read.

    Attributes:
        place: the index of its source.
        value: what stands for it in the spec.
        file: what is to be uploaded; None if the spec has the text itself.
    """

    place: int
    value: str
    file: LocalFile | None


def read_body_file(sources: Sequence[Source]) -> BodyFile | None:
    """Read the body that a source names with the mark: every byte of its file, also a line break at the end.

    Later sources override earlier ones, so only the last body counts. None if it names no file.

    Raises:
        UserError: the file cannot be read, is too large or not UTF-8, or a spec file names it.
    """
    for index, source in reversed(list(enumerate(sources))):
        if (body := _find_body(source.values)) is None:
            continue
        if not isinstance(body, str) or not body.startswith(MARK):
            return None
        others = [other.label for other in sources if other is not source]
        value, file = _read(source, body, others)
        return BodyFile(index, value, file)
    return None


def _find_body(values: object) -> object:
    return values.get("body") if isinstance(values, Mapping) else None  # `parse_spec` refuses what is none


def _read(source: Source, body: str, others: Sequence[str | None]) -> tuple[str, LocalFile | None]:
    name = body.removeprefix(MARK)
    if name.startswith(MARK):
        return name, None
    if source.label is not None:
        raise UserError(
            f"{source.place('body')}: {format_value(body)} names a file, which only the command line may: "
            f"--body {format_value(body)}; a body that begins with @ is written @{format_value(body)}"
        )
    label = f"{source.place('body')}: {format_value(body)}"
    if name == STANDARD_INPUT:
        if STANDARD_INPUT_LABEL in others:
            raise UserError(f"{label}: {STANDARD_INPUT_LABEL} is the spec already")
        return _decode(read_input(name, label), label), None
    content = read_input(expand_home(name), label, MOST_BODY_BYTES)
    text = _decode(content, label)
    if len(msgspec.json.encode(text)) + _ROOM_BESIDE <= LARGEST_BYTES:
        return text, None
    try:
        parse_body(text)
    except ValueError as error:
        raise UserError(f"{label}: {error}") from error
    file = read_local_file(expand_home(name), label)
    return str(file.reference), file


def _decode(content: bytes, label: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{label}: byte {error.start} is not UTF-8") from error

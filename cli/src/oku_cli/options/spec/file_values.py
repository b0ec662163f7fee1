"""`@FILE`: a file of this machine becomes a body, or a file of the run for its workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from oku_cli.follow.upload import LocalFile, read_local_file
from oku_cli.options.spec.input_file import (
    LARGEST_BYTES,
    STANDARD_INPUT,
    STANDARD_INPUT_LABEL,
    StreamedSpec,
    find_file,
    read_input,
)
from oku_core.errors import UserError, format_value
from oku_core.spec.files import MOST_BYTES, TLS_FILE_KEYS, SpecFileError
from oku_core.spec.parser import Source
from oku_core.spec.values.file_reference import FindFile
from oku_core.spec.values.request_content import MOST_BODY_BYTES, parse_body

MARK = "@"
_BODY, _TARGETS = "body", "targets"
_ROOM_BESIDE = 64 << 10
"""How many bytes of the largest spec are for all other keys."""


class _Place(NamedTuple):
    """Where a body stands: its source, the name of the place in messages, and the flag that could name it."""

    source: Source
    name: str
    flag: str


class BodyFiles:
    """Reads bodies that sources name with the mark: every byte of a file, also a line break at its end."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.files: list[LocalFile] = []
        self._labels = [source.label for source in sources]
        self._room = LARGEST_BYTES - _ROOM_BESIDE

    def read(self, source: Source) -> Source:
        """The source with its body and its targets' bodies in place of their file names.

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
            return target  # `parse_spec` refuses it
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


@dataclass(frozen=True)
class ReadSources:
    """What the user gave: sources, which name files as a spec does, and the files that are to be uploaded."""

    sources: list[Source]
    files: list[LocalFile]


def read_files(sources: Sequence[Source]) -> ReadSources:
    """Read the files that the sources name with the mark, including bodies.

    Later sources override earlier ones, so of a key only the last value counts.

    Raises:
        UserError: a file cannot be read, has a wrong kind, or is not one that a spec file may name.
    """
    read, files, given = list(sources), [], set[str]()
    bodies = BodyFiles(sources)
    for index, source in reversed(list(enumerate(sources))):
        if not isinstance(source.values, dict):
            continue  # `parse_spec` refuses it
        counting = {key: value for key, value in source.values.items() if key not in given}
        given |= counting.keys()
        found = dict(bodies.read(replace(source, values=counting)).values)
        for key in TLS_FILE_KEYS:
            value = found.get(key)
            if not isinstance(value, str) or not value:
                continue
            is_marked = value.startswith(MARK)
            path = value.removeprefix(MARK)
            if isinstance(source, StreamedSpec) or (is_marked and not path.startswith(MARK)):
                local = _read(source, key, path)
                files.append(local)
                path = str(local.reference)
            found[key] = path
        read[index] = replace(source, values={**source.values, **found})
    return ReadSources(read, [*files, *bodies.files])


def build_file_finder(files: Sequence[LocalFile]) -> FindFile:
    """A function that gives the path of a file that is to be uploaded; `SpecFileError` for any other."""
    paths = {file.reference.digest: file.path for file in files}

    def find(digest: str) -> Path:
        path = paths.get(digest)
        if path is None:  # the user has written the reference by hand
            raise SpecFileError("it is not here; @ and its path name a file")
        return path

    return find


def _read(source: Source, key: str, name: str) -> LocalFile:
    label = f"{source.place(key)}: {format_value(MARK + name)}"
    local = read_local_file(find_file(source, name, source.place(key), f"--{key}"), label)
    if local.reference.size > MOST_BYTES:
        raise UserError(f"{label}: is larger than {MOST_BYTES >> 20} MiB")
    return local

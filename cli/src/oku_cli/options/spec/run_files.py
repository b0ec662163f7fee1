"""`@FILE` on the command line: the file of this machine becomes one of the run, and its workers get it.

Without the mark, a certificate is a path of the workers' machine. Only the command line may name a file of
this one: a spec file may be somebody else's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from oku_cli.options.spec.body_file import MARK, read_body_file
from oku_cli.options.spec.input_file import expand_home
from oku_cli.remote.local_file import LocalFile, read_local_file
from oku_core.errors import UserError, format_value
from oku_core.spec.files import MOST_BYTES
from oku_core.spec.parser import Source
from oku_core.spec.values.file_reference import FileRef

_KEYS = ("cacert", "cert", "key")


@dataclass(frozen=True)
class ReadSources:
    """What the user gave.

    Attributes:
        sources: the sources, which name files as a spec does.
        files: those of them that are to be uploaded.
    """

    sources: list[Source]
    files: list[LocalFile]


def read_files(sources: Sequence[Source]) -> ReadSources:
    """Read the files that the sources name with the mark, also the one of the body.

    Raises:
        UserError: a file cannot be read, is not what it should be, or a spec file names it.
    """
    read, files = list(sources), []
    for index, source in enumerate(sources):
        if not isinstance(source.values, dict):
            continue  # `parse_spec` refuses what is none
        for key in _KEYS:
            value = source.values.get(key)
            if not isinstance(value, str) or not value.startswith(MARK):
                continue
            name = value.removeprefix(MARK)
            if not name.startswith(MARK):
                local = _read(source, key, name)
                files.append(local)
                name = str(local.reference)
            read[index] = _set(read[index], key, name)
    body = read_body_file(read)
    if body is not None:
        read[body.place] = _set(read[body.place], "body", body.value)
        files += [] if body.file is None else [body.file]
    return ReadSources(read, files)


def build_finder(files: Sequence[LocalFile]) -> Callable[[FileRef], Path]:
    """A function that gives the path of a file that is to be uploaded."""
    paths = {file.reference.digest: file.path for file in files}
    return lambda reference: paths[reference.digest]


def _read(source: Source, key: str, name: str) -> LocalFile:
    label = f"{source.place(key)}: {format_value(MARK + name)}"
    if source.label is not None:
        raise UserError(
            f"{label} names a file of this machine, which only the command line may:"
            f" --{key} {format_value(MARK + name)}"
        )
    local = read_local_file(expand_home(name), label)
    if local.reference.size > MOST_BYTES:
        raise UserError(f"{label}: is larger than {MOST_BYTES >> 20} MiB")
    return local


def _set(source: Source, key: str, value: object) -> Source:
    return Source(source.label, {**source.values, key: value})

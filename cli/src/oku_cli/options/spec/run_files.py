"""`@FILE`: a file of this machine becomes one of the run, and its workers get it.

Without the mark, a certificate is a path of the workers' machine. A spec that is streamed names no file of
theirs: what it names is here, with the mark or without.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from oku_cli.options.spec.body_file import MARK, BodyFiles
from oku_cli.options.spec.named_file import StreamedSpec, find_file
from oku_cli.remote.local_file import LocalFile, read_local_file
from oku_core.errors import UserError, format_value
from oku_core.spec.files import MOST_BYTES, TLS_FILE_KEYS, SpecFileError
from oku_core.spec.parser import Source
from oku_core.spec.values.file_reference import FileRef


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
    """Read the files that the sources name with the mark, also those of bodies.

    Later sources override earlier ones, so of a key only the last value counts.

    Raises:
        UserError: a file cannot be read, is not what it should be, or not one that a spec file may name.
    """
    read, files, given = list(sources), [], set[str]()
    bodies = BodyFiles(sources)
    for index, source in reversed(list(enumerate(sources))):
        if not isinstance(source.values, dict):
            continue  # `parse_spec` refuses what is none
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


def build_finder(files: Sequence[LocalFile]) -> Callable[[FileRef], Path]:
    """A function that gives the path of a file that is to be uploaded; `SpecFileError` for any other."""
    paths = {file.reference.digest: file.path for file in files}

    def find(reference: FileRef) -> Path:
        path = paths.get(reference.digest)
        if path is None:  # somebody has written the reference down
            raise SpecFileError("it is not here; @ and its path name a file")
        return path

    return find


def _read(source: Source, key: str, name: str) -> LocalFile:
    label = f"{source.place(key)}: {format_value(MARK + name)}"
    local = read_local_file(find_file(source, name, source.place(key), f"--{key}"), label)
    if local.reference.size > MOST_BYTES:
        raise UserError(f"{label}: is larger than {MOST_BYTES >> 20} MiB")
    return local

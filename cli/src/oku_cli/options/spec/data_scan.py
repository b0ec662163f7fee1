"""`data`: the file of rows that a user names is scanned, and becomes a file of the run with its row index."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from oku_cli.follow.upload import LocalFile, read_local_file
from oku_cli.options.spec.file_values import ReadSources, build_file_finder
from oku_cli.options.spec.input_file import find_file
from oku_core.data.data_format import DataError
from oku_core.data.escape import IN_HEADER
from oku_core.data.scan import Scan, Use, read_table, scan
from oku_core.errors import UserError, format_value
from oku_core.spec.data_file import describe_scan, parse_data_file
from oku_core.spec.files import SpecFiles
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.url import Url
from oku_workers.engines.http.request_parts import list_values

_KEY, _SCENARIO = "data", "scenario"
_REPEAT = ":repeat"
_TEMPLATE_KEYS = frozenset({"url", "method", "header", "body", "base-url", "targets", _KEY})
_FORMS = "the path of a file, with :repeat behind it to start over, or {file: PATH, repeat: true}"
_UNKNOWN = "0" * 64
_ANY_PLACE = Url("http://h")


class _Named(NamedTuple):
    """A file that a source names: its path, its name in messages, and whether its rows start over."""

    path: Path
    name: str
    repeat: bool


@contextmanager
def scanned(read: ReadSources) -> Iterator[ReadSources]:
    """The sources with their data as a spec has it; the row index is there as long as the context lasts.

    Raises:
        UserError: the data cannot be read, a line of it is wrong, or a placeholder is none of its columns.
    """
    place = next((place for place in reversed(range(len(read.sources))) if _find(read.sources[place])), None)
    if place is None:
        yield read
        return
    source = read.sources[place]
    named = _read_value(source)
    table = read_table(named.path, named.name)

    def describe(found: Scan) -> list[Source]:
        value = describe_scan(named.path.name, table, found, repeat=named.repeat)
        changed = replace(source, values={**source.values, _KEY: value})
        return [*read.sources[:place], changed, *read.sources[place + 1 :]]

    described = describe(Scan(_UNKNOWN, 1, 1, _UNKNOWN))
    # User code reads whole rows, and may use any column.
    use = (
        Use(frozenset(table.columns))
        if _runs_user_code(read)
        else _find_use(described, read.files, table.columns)
    )
    with TemporaryDirectory(prefix="oku-") as folder:
        index = Path(folder, "rows")
        found = scan(named.path, named.name, index, use)
        data = parse_data_file(describe_scan(named.path.name, table, found, repeat=named.repeat))
        files = [
            _read_again(path, named.name, reference)
            for path, reference in zip((named.path, index), data.list_files(), strict=True)
        ]
        yield replace(read, sources=describe(found), files=[*read.files, *files])


def _runs_user_code(read: ReadSources) -> bool:
    return any(_SCENARIO in source.written for source in read.sources)


def _find(source: Source) -> bool:
    """Whether a source names a file; one that was scanned is left as it is."""
    written = source.written
    return _KEY in written and not (isinstance(value := written[_KEY], Mapping) and "digest" in value)


def _read_value(source: Source) -> _Named:
    value, place = source.values[_KEY], source.place(_KEY)
    repeat: object = False
    if isinstance(value, Mapping) and "file" in value and set(value) <= {"file", "repeat"}:
        value, repeat = value["file"], value.get("repeat", False)
    elif isinstance(value, str) and value.endswith(_REPEAT):
        value, repeat = value.removesuffix(_REPEAT), True
    if not isinstance(value, str) or not value or not isinstance(repeat, bool):
        raise UserError(f"{place}: {format_value(source.values[_KEY])} is not {_FORMS}")
    return _Named(Path(find_file(source, value, place, "--data")), str(value), repeat)


def _read_again(path: Path, name: str, reference: FileRef) -> LocalFile:
    """A file to upload, which still matches its scan."""
    file = read_local_file(str(path), name)
    if file.reference.digest != reference.digest:
        raise DataError(f"{name}: was changed while it was read; nothing was started")
    return replace(file, reference=reference)


def _find_use(sources: Sequence[Source], files: Sequence[LocalFile], columns: Collection[str]) -> Use:
    """What the requests use of each row, by the keys that they are made of."""
    kept = [source.drop(source.written.keys() - _TEMPLATE_KEYS) for source in sources]
    spec = SpecFiles(find=build_file_finder(files)).fill_in_bodies(parse_spec(*kept))
    if not spec.list_places():
        spec = msgspec.structs.replace(spec, urls=(_ANY_PLACE,))
    values = [value for value in list_values(spec) if value.column in columns]  # and not the whole row
    return Use(
        frozenset(value.column for value in values),
        frozenset(value.column for value in values if value.escape is IN_HEADER),
    )

"""`scenario`: the file of user code that a user names, and all that comes along, become files of the run.

A spec then names each with its path, beside the facts that the file declares: its engine and its hooks.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from oku_cli.follow.upload import LocalFile, read_local_file
from oku_cli.options.spec.file_values import ReadSources
from oku_cli.options.spec.input_file import describe_fault, find_file, may_name
from oku_cli.user_code.code_files import check_total, list_included
from oku_cli.user_code.scenario_file import ScenarioFile, read_scenario_file
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source
from oku_core.spec.spec import AUTO_ENGINE, USER_CODE_ENGINES, Engine
from oku_core.spec.values.file_reference import CODE_PATH, REFERENCE_MARK, CodeFile, is_code_path
from oku_core.spec.values.scalar import wrap_list

_SCENARIO, _INCLUDE, _ENGINE, _HOOKS, _DATA = "scenario", "include", "engine", "hooks", "data"


class _Named(NamedTuple):
    """A file or folder that a source names, and its name in error messages."""

    source: Source
    path: Path
    label: str


def read_code(read: ReadSources) -> ReadSources:
    """The sources with their user code as a spec has it; one whose files are known already is left as it is.

    Raises:
        UserError: a file cannot be read, is not what it should be, or not one that a spec file may name.
    """
    given = _collect(read.sources)
    if _SCENARIO not in given or not _is_path(given[_SCENARIO].values[_SCENARIO]):
        _refuse_include_alone(given)
        return read
    source = given[_SCENARIO]
    named = _name(source, source.values[_SCENARIO], _SCENARIO)
    # Locust finds modules in the working directory, too; a spec file may not name files from there.
    elsewhere = [Path.cwd()] if source.label is None else []
    check = partial(_check_place, named)
    scenario = read_scenario_file(named.path, named.label, _read_engine(given), elsewhere, check)
    _check(scenario, named, given)
    files = _read_files(named, scenario, given.get(_INCLUDE))
    code = [str(CodeFile.build(path, file.reference)) for path, file in files.items()]
    found: dict[str, object] = {_SCENARIO: code[0], _ENGINE: str(scenario.engine)}
    if scenario.functions is not None:
        found[_HOOKS] = [str(hook) for hook in scenario.functions.hooks]
    if code[1:]:
        found[_INCLUDE] = code[1:]
    sources = [each.drop((_INCLUDE, _ENGINE, _HOOKS)) for each in read.sources]
    place = next(number for number, each in enumerate(read.sources) if each is source)
    sources[place] = replace(sources[place], values={**sources[place].values, **found})
    return ReadSources(sources, [*read.files, *files.values()])


def _collect(sources: list[Source]) -> dict[str, Source]:
    """By the keys that matter here, the source whose value counts, with its keys as a spec has them."""
    given: dict[str, Source] = {}
    for source in sources:
        written = replace(source, values=source.written, aliases={})
        for key in (_SCENARIO, _INCLUDE, _ENGINE, _DATA):
            if key in written.values:
                given[key] = source if key == _SCENARIO else written
    return given


def _refuse_include_alone(given: Mapping[str, Source]) -> None:
    """Files that go along with a stored scenario have no folder of their own here."""
    source = given.get(_INCLUDE)
    if source is None or not any(map(_is_path, wrap_list(source.values[_INCLUDE]))):
        return
    reason = "applies only to user code: a scenario or a locustfile"
    if _SCENARIO in given:
        reason = "cannot be combined with a scenario that is a file of a run already"
    raise UserError(f"{source.place(_INCLUDE)}: {reason}")


def _is_path(value: object) -> bool:
    return isinstance(value, str) and REFERENCE_MARK not in value


def _name(source: Source, value: object, key: str) -> _Named:
    place = source.place(key)
    if not isinstance(value, str) or not value:
        raise UserError(f"{place}: {format_value(value)} is not the path of a file")
    path = Path(os.path.abspath(find_file(source, value, place, f"--{key}")))  # noqa: PTH100  # without `..`
    if "\0" in value or not is_code_path(path.name):
        raise UserError(f"{place}: {format_value(value)} is not the path of a file")
    return _Named(source, path, value if source.label is None else f"{place}: {value}")


def _read_engine(given: Mapping[str, Source]) -> Engine | None:
    """The engine that the user has named; None if that is none of user code, which `parse_spec` refuses."""
    value = given[_ENGINE].values[_ENGINE] if _ENGINE in given else None
    return next((engine for engine in USER_CODE_ENGINES if value == engine), None)


def _check(scenario: ScenarioFile, named: _Named, given: Mapping[str, Source]) -> None:
    """Refuse an engine that does not run this file, and a row of no data."""
    wanted = given[_ENGINE].values[_ENGINE] if _ENGINE in given else AUTO_ENGINE
    if wanted not in (AUTO_ENGINE, scenario.engine):
        what = "a locustfile" if scenario.engine is Engine.LOCUST else "a Python scenario"
        place = given[_ENGINE].place(_ENGINE)
        raise UserError(f"{place}: {format_value(wanted)} does not run {named.label}, which is {what}")
    functions = scenario.functions
    if functions is not None and functions.row_line is not None and _DATA not in given:
        raise UserError(f"{named.label}:{functions.row_line}: scenario: takes row, but data is not given")


def _read_files(named: _Named, scenario: ScenarioFile, including: Source | None) -> dict[str, LocalFile]:
    """The files by their paths from the folder of the scenario; the scenario itself is the first."""
    folder = named.path.parent
    found = {place: named._replace(path=path) for place, path in scenario.modules.items()}
    found = {named.path.name: named} | found
    for item in wrap_list(including.values[_INCLUDE]) if including is not None else ():
        assert including is not None
        included = _name(including, item, _INCLUDE)
        label = f"{including.place(_INCLUDE)}: {item}"
        for path in list_included(included.path, label):
            found[_find_place(path, folder, label, named)] = _Named(including, path, label)
    for each in found.values():
        _check_place(each, each.path)
    # The limits are checked before anything is read.
    sizes = [each.path.stat().st_size for each in found.values() if each.path.exists()]
    check_total(sum(sizes), len(found), named.label)
    return {place: _read(each) for place, each in found.items()}


def _find_place(path: Path, folder: Path, label: str, named: _Named) -> str:
    """Where a file is to stand beside the scenario: where it stands here."""
    fault = f"is not in the folder of {named.path.name} or below it"
    with suppress(OSError, RuntimeError):  # a loop of links
        for resolve in (Path.absolute, Path.resolve):
            file, root = resolve(path), resolve(folder)
            if file.is_relative_to(root):
                if is_code_path(place := file.relative_to(root).as_posix()):
                    return place
                fault = f"{format_value(place)} is not {CODE_PATH}"
    raise UserError(f"{label}: {fault}")


def _read(named: _Named) -> LocalFile:
    path = named.path
    here = Path().absolute()
    label = path.relative_to(here) if path.is_relative_to(here) else path
    return read_local_file(str(path), str(label))


def _check_place(named: _Named, path: Path) -> None:
    """Refuse a file that the source may not name: an imported or included one may be a link elsewhere."""
    if not may_name(named.source, path):
        raise UserError(f"{named.label}: {path} {describe_fault(named.source)}")

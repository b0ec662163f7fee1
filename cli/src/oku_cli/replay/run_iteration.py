"""The iteration of an index of a run of user code: all that it is made of, fetched from where the run is."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from oku_cli.backends.run_backend import RunBackend, RunData
from oku_cli.replay.run_request import fetch_inputs, make_single
from oku_cli.views.replay_view import ShownIteration
from oku_core.data.data_format import DataFormat
from oku_core.data.scan import read_table, scan
from oku_core.errors import UserError
from oku_core.spec.data_file import DataFile, describe_scan, parse_data_file
from oku_core.spec.files import SpecFiles, list_files
from oku_core.spec.spec import Hook, Spec

_ROW, _INDEX = "row", "rows"


@dataclass(frozen=True)
class RunIteration:
    """An iteration of a run; it has no row if the run has no data."""

    run: str
    index: int
    spec: Spec
    row: Mapping[str, str] | None

    def show(self) -> ShownIteration:
        """It as people are shown it."""
        assert self.spec.scenario is not None
        return ShownIteration(
            run=self.run,
            index=self.index,
            scenario=self.spec.scenario.path,
            engine=self.spec.chosen_engine,
            row=self.row,
        )


async def fetch_iteration(backend: RunBackend, run: str, index: int, spec: Spec) -> RunIteration:
    """Fetch an iteration of a run, but for its files."""
    return RunIteration(run, index, spec, await RunData(backend, run, spec).fetch(index, most=1))


def refuse_setup(iteration: RunIteration) -> None:
    """Refuse an iteration that cannot be made alone: what `setup` has made may be gone by now."""
    if Hook.SETUP in iteration.spec.hooks:
        raise UserError(
            f"run {iteration.run} has a setup, without which its iterations cannot be made: "
            "oku run makes it anew"
        )


async def prepare_iteration(
    backend: RunBackend, iteration: RunIteration, folder: Path
) -> tuple[Spec, SpecFiles]:
    """Fetch the files of an iteration into a private folder; returns a spec with its row alone, and them."""
    spec = msgspec.structs.replace(make_single(iteration.spec), data=None, workers=1)
    files = await fetch_inputs(backend, iteration.run, list_files(spec), folder)
    if iteration.row is not None:
        spec = _write_row(spec, iteration.spec.data, iteration.row, folder)
    return spec, files


def _write_row(spec: Spec, data: DataFile | None, row: Mapping[str, str], folder: Path) -> Spec:
    """A spec whose data are one row, for any index: the file of all of them may be large."""
    assert data is not None
    path, index = folder / _ROW, folder / _INDEX
    if data.format is DataFormat.CSV:
        path = path.with_suffix(".csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(row), list(row.values())])
    else:
        path = path.with_suffix(".jsonl")
        path.write_bytes(msgspec.json.encode(row) + b"\n")
    table, found = read_table(path, data.name), scan(path, data.name, index)
    single = parse_data_file(describe_scan(data.name, table, found, repeat=True))
    for written, reference in zip((path, index), single.list_files(), strict=True):
        written.rename(folder / reference.digest)
    return msgspec.structs.replace(spec, data=single)

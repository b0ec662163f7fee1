import hashlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from oku_cli.replay.run_iteration import RunIteration, fetch_iteration, prepare_iteration, refuse_setup
from oku_core.data.data_format import DataFormat
from oku_core.data.escape import AS_TEXT
from oku_core.data.row_reader import RowReader, Value
from oku_core.errors import UserError
from oku_core.results.run_api import RunRows
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.spec.values.quantity import Rate

CODE = b"async def scenario(index): pass\n"
SCENARIO = CodeFile.build("a.py", FileRef.build(hashlib.sha256(CODE).hexdigest(), len(CODE), "a.py"))
ROW = {"sku": 'a "b",\nc', "price": "é 7"}


def make_spec(**changes: object) -> Spec:
    """A spec of user code."""
    given: dict[str, object] = {"engine": Engine.PYTHON, "scenario": SCENARIO, "requests": 9} | changes
    return Spec(**given)  # type: ignore[arg-type]


def make_data(kind: DataFormat) -> DataFile:
    """Data of nine rows, which are somewhere else."""
    return DataFile(
        name=f"d.{kind}", format=kind, digest="0" * 64, size=9, rows=9, columns=tuple(ROW), index="1" * 64
    )


class Backend:
    """Has one run, and no file but that of its user code."""

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """One row."""
        assert stop == start + 1
        return RunRows(run=run, start=start, rows=[ROW])

    async def fetch_run_file(self, _: str, digest: str) -> bytes:
        """The only file."""
        assert digest == SCENARIO.file.digest
        return CODE


async def prepare(spec: Spec, folder: Path) -> tuple[Spec, Mapping[str, str] | None, Path]:
    """What iteration 7 is made of: a spec, its row, and where its scenario is."""
    backend = Backend()
    iteration = await fetch_iteration(backend, "r1", 7, spec)  # type: ignore[arg-type]
    prepared, files = await prepare_iteration(backend, iteration, folder)  # type: ignore[arg-type]
    return prepared, iteration.row, files.find(SCENARIO.file.digest)


async def test_an_iteration_has_its_files_and_no_load(tmp_path: Path) -> None:
    """It begins at once, whatever the load of its run was."""
    spec = make_spec(rate=Rate("5/s"), concurrency=10, iteration_timeout_s=3.0)
    prepared, row, path = await prepare(spec, tmp_path)
    assert path.read_bytes() == CODE
    assert (prepared.is_open, prepared.concurrency, prepared.iteration_timeout_s) == (False, 1, 3.0)
    assert row is None
    assert prepared.data is None


@pytest.mark.parametrize("kind", DataFormat)
async def test_an_iteration_has_its_row_whatever_its_index_is(tmp_path: Path, kind: DataFormat) -> None:
    """The file with all of them stays where it is."""
    prepared, row, _ = await prepare(make_spec(data=make_data(kind)), tmp_path)
    assert row == ROW
    data = prepared.data
    assert data is not None
    assert (data.rows, data.repeat, data.format, set(data.columns)) == (1, True, kind, set(ROW))
    values = [Value(column, AS_TEXT) for column in ROW]
    with closing(RowReader(data.locate(tmp_path.joinpath), values)) as reader:
        assert [value.decode() for value in reader.read(7)] == list(ROW.values())


def test_an_iteration_is_shown_unless_it_needs_a_setup() -> None:
    """As far as it can be known without making it."""
    shown = RunIteration("r1", 7, make_spec(), ROW).show()
    assert (shown.run, shown.index, shown.scenario, shown.engine, shown.row) == (
        "r1",
        7,
        "a.py",
        "python",
        ROW,
    )
    # An iteration that needs a setup is refused.
    refuse_setup(RunIteration("r1", 7, make_spec(hooks=(Hook.TEARDOWN,)), None))
    with pytest.raises(UserError, match=r"^run r1 has a setup, without which its iterations cannot be made"):
        refuse_setup(RunIteration("r1", 7, make_spec(hooks=(Hook.SETUP,)), None))

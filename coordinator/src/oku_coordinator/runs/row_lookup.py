"""The rows of the data of a run, read for those who look at its requests."""

from collections.abc import Callable
from pathlib import Path

from oku_core.data.data_format import DataError
from oku_core.data.row_reader import read_rows
from oku_core.errors import UserError
from oku_core.results.run_rows import MOST_ROWS, RunRows
from oku_core.spec.spec import Spec


def read_run_rows(run: str, spec: Spec, find_file: Callable[[str], Path], wanted: range) -> RunRows:
    """Read the rows of some requests in a row, fewer of them if they are long; this blocks.

    Args:
        run: the id of the run.
        spec: its spec.
        find_file: gives the path of a file by its digest.
        wanted: the indices of the requests.

    Raises:
        UserError: the run has no data, or it cannot be read; or there are no such indices, or too many.
    """
    if spec.data is None:
        raise UserError(f"run {run} has no data")
    if not 0 <= wanted.start < wanted.stop <= spec.requests:
        raise UserError(
            f"start {wanted.start} and stop {wanted.stop} are not a range of the {spec.requests:,} indices"
            f" of run {run}"
        )
    if len(wanted) > MOST_ROWS:
        raise UserError(f"{len(wanted):,} rows are wanted, and one answer has at most {MOST_ROWS:,}")
    data = spec.data
    try:
        rows = read_rows(find_file(data.digest), find_file(data.index), data.table, data.rows, wanted)
    except DataError as error:
        raise UserError(f"data {data.name} cannot be used: {error}") from error
    return RunRows(run=run, start=wanted.start, rows=rows)

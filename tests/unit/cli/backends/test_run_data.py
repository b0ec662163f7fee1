from typing import Any

from oku_cli.backends.run_data import RunData
from oku_core.data.data_format import DataFormat
from oku_core.results.run_rows import MOST_ROWS, RunRows
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Spec

DATA = DataFile(
    name="t.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("a",), index="1" * 64
)


class Backend:
    """Has rows, and notes which ones are asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """Give rows."""
        self.asked.append((start, stop))
        return RunRows(run=run, start=start, rows=[{"a": str(index)} for index in range(start, stop)])


async def test_rows_that_follow_are_fetched_together() -> None:
    """A row that is known is not fetched again, and none behind the last is asked for."""
    backend: Any = Backend()
    data = RunData(backend, "r1", Spec(requests=MOST_ROWS + 50, data=DATA))
    assert data.columns == ("a",)
    for index in (3, 4, 900, MOST_ROWS + 10, MOST_ROWS + 49):
        assert await data.fetch(index) == {"a": str(index)}
    assert backend.asked == [(3, MOST_ROWS + 3), (MOST_ROWS + 10, MOST_ROWS + 50)]


async def test_a_run_without_data_has_no_rows() -> None:
    """Nobody is asked."""
    backend: Any = Backend()
    data = RunData(backend, "r1", Spec())
    assert (await data.fetch(3), data.columns, backend.asked) == (None, (), [])

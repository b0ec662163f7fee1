"""The rows of the data of a run, fetched some at a time for those who look at one request after the other."""

from collections.abc import Mapping, Sequence

from oku_cli.backends.run_backend import RunBackend
from oku_core.results.run_rows import MOST_ROWS
from oku_core.spec.spec import Spec


class RunData:
    """Finds the rows of requests.

    Args:
        backend: has the run.
        run: its id.
        spec: its spec.
    """

    def __init__(self, backend: RunBackend, run: str, spec: Spec) -> None:
        self._backend, self._run, self._spec = backend, run, spec
        self._start = 0
        self._rows: list[Mapping[str, str]] = []

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns of the data; none without data."""
        return () if self._spec.data is None else self._spec.data.columns

    async def fetch(self, index: int, most: int = MOST_ROWS) -> Mapping[str, str] | None:
        """The row of a request; None if the run has no data.

        Args:
            index: of the request.
            most: how many rows are fetched if this one is not known: those that follow may be wanted, too.
        """
        if self._spec.data is None:
            return None
        if not self._start <= index < self._start + len(self._rows):
            stop = min(index + most, self._spec.requests)
            self._rows = (await self._backend.fetch_rows(self._run, index, stop)).rows
            self._start = index
        return self._rows[index - self._start]

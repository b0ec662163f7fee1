"""Chooses the runs in the metrics, and reads their figures on each scrape.

These are the active runs and the ones that came to rest recently, so that a scrape after the end has the last
figures of a run. They are read from the ledger: a restarted coordinator shows the same runs, and the figures
of a run at rest equal its summary.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TypeVar

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.storage.records import BreachError, RunRow, UnknownRunError
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.storage_health import StorageError
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import account_table
from oku_coordinator.telemetry.prometheus.run_metrics import RunFigures, build_run_figures, build_tick_figures
from oku_coordinator.telemetry.prometheus.target_metrics import (
    RequestFigures,
    build_inner_figures,
    build_target_figures,
)
from oku_core.process.clock import Clock
from oku_core.spec.spec import USER_CODE_ENGINES
from oku_core.summary.tick import Tick

SHOWN_S = 300.0
"""How long a run is exported after it has come to rest."""
MOST_RUNS = 20
MOST_NAMES = 257
"""The most names of targets, or of inner requests, over all runs; the newest run is always complete."""

_T = TypeVar("_T")
_Kept = dict[str, tuple[RunRow, _T]]
"""Figures of runs at rest by run, with the row that they belong to."""


class RecentRuns:
    """Reads the figures of the exported runs.

    Args:
        ledger: has the runs.
        clock: Unix time.
    """

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._tick: Tick | None = None
        self._runs: _Kept[RunFigures] = {}
        self._targets: _Kept[list[RequestFigures]] = {}
        self._inner: _Kept[list[RequestFigures]] = {}

    def record_tick(self, tick: Tick | None) -> None:
        """Record the last second of the run that has its turn; None when that run comes to rest."""
        self._tick = tick

    def read_runs(self) -> list[RunFigures]:
        """The progress of the runs: of the active one from its last tick, of others from the ledger."""
        return list(self._read(self._runs, self._build_run))

    def read_targets(self) -> list[RequestFigures]:
        """The figures of their targets."""
        return _limit(self._read(self._targets, self._build_targets))

    def read_inner(self) -> list[RequestFigures]:
        """The figures of their inner requests."""
        return _limit(self._read(self._inner, self._build_inner))

    def _read(self, kept: _Kept[_T], build: Callable[[RunRow], _T]) -> Iterator[_T]:
        """Yield the result of `build` for each run, newest first, without unreadable runs."""
        try:
            with self._ledger.read() as t:
                rows = run_table.fetch_recent(t, self._clock() - SHOWN_S, MOST_RUNS)
        except StorageError:
            return  # reported elsewhere, as the errors below are
        for gone in kept.keys() - {row.run for row in rows}:
            del kept[gone]
        for row in rows:
            row_before, figures = kept.get(row.run, (None, None))
            if figures is None or row_before != row:
                try:
                    figures = build(row)
                except (UnknownRunError, BreachError, StorageError):
                    continue
            if row.is_at_rest:
                kept[row.run] = row, figures
            yield figures

    def _build_run(self, row: RunRow) -> RunFigures:
        if row.is_active and self._tick is not None and self._tick.run == row.run:
            return build_tick_figures(self._tick, row.queued_s)
        with self._ledger.read() as t:
            standing = snapshots.fetch_standing(t, row.run)
        return build_run_figures(standing)

    def _build_targets(self, row: RunRow) -> list[RequestFigures]:
        with self._ledger.read() as t:
            spec = run_table.fetch_run(t, row.run).spec
        return build_target_figures(row.run, spec, self._fetch_totals(row))

    def _build_inner(self, row: RunRow) -> list[RequestFigures]:
        if row.engine.engine not in USER_CODE_ENGINES:
            return []
        return build_inner_figures(row.run, self._fetch_totals(row))

    def _fetch_totals(self, row: RunRow) -> RunAccount:
        """The totals of a run's account; the ledger is not blocked while figures are built from them."""
        with self._ledger.read() as t:
            if account_table.is_in_memory(t, row.run):
                return account_table.fetch_account(t, row.run).freeze_totals()
        with closing(self._ledger.open_reader()) as reader, reader.read() as t:
            return account_table.fetch_account(t, row.run).freeze_totals()


def _limit(by_run: Iterable[list[RequestFigures]]) -> list[RequestFigures]:
    """The figures of the newest runs with at most `MOST_NAMES` names in all, at least of one."""
    shown: list[RequestFigures] = []
    for figures in by_run:
        if shown and len(shown) + len(figures) > MOST_NAMES:
            break
        shown += figures
    return shown

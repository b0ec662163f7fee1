"""Records the coverage of the active run's request space every few seconds, for Loki.

After many deaths the space is cut into very many slices, so they are read in a thread through a separate
connection: neither the event loop nor writers of the ledger wait for it.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing

from oku_coordinator.event_loop import BackgroundService
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.rules.leases.closing import fetch_coverage, measure_extent
from oku_coordinator.ledger.tables import lease_table, run_table
from oku_core.process.clock import Clock
from oku_core.process.supervision import Health
from oku_core.results.coverage import build_coverage_lines
from oku_core.results.lines import Fields

COVERAGE_S = 5.0
_SHARE = 0.05
"""Reading takes at most this share of the time: a space in very many slices is read less often."""


class CoverageRecorder(BackgroundService):
    """Records coverage while its task runs.

    Args:
        ledger: has the slices, and stores the lines.
        clock: Unix time.
        timer: monotonic seconds.
    """

    service_name = "coverage"

    def __init__(self, ledger: Ledger, clock: Clock, timer: Clock = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._timer = timer

    def record(self) -> None:
        """Record the coverage of the active run, if it has lines."""
        with closing(self._ledger.open_reader()) as reader:
            at = self._clock()
            with reader.read() as t:
                run = run_table.fetch_current_run(t)
            if run is None or not run.is_active or not run.is_published:
                return
            lines = build_coverage(reader, run.run)
        with self._ledger.change() as t:
            history.put_coverage(t, run.run, at, lines)

    async def _work(self, health: Health) -> None:
        while True:
            began = self._timer()
            await asyncio.to_thread(self.record)
            health.record_success()
            await asyncio.sleep(max(COVERAGE_S, (self._timer() - began) / _SHARE))


def build_coverage(ledger: Ledger, run: str) -> Sequence[Fields]:
    """Build the lines of a run."""
    with ledger.read() as t:
        slices, again = fetch_coverage(t, run), lease_table.fetch_taken_back(t, run)
        extent = measure_extent(t, run)
    return list(build_coverage_lines(slices, again, extent))

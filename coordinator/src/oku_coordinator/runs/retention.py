"""Deletes runs that are too old or too many, and removes what is left of deleted runs.

It works in the background, some rows and pages at a time, and goes on where another process stopped.
"""

import asyncio
import logging
import time
from asyncio import sleep
from contextlib import suppress
from pathlib import Path

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.storage.records import RunInUseError
from oku_coordinator.ledger.tables import deletion_table, submission_table
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.run_keys import build_end
from oku_coordinator.settings import RetentionRule
from oku_core.process.clock import Clock
from oku_core.process.supervision import Health, Supervisor

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_SURPLUS_EVERY_S = 60.0
"""How often the rule is applied."""
_REST_S = 0.01
"""A pause between two transactions, in which others get their turn."""


class Retention:
    """Applies a rule to the runs of a ledger.

    Args:
        ledger: keeps the runs.
        reports: the folder in which pages of runs may have been left.
        rule: how long runs are kept.
        clock: Unix time.
        files: keeps the files of the runs.
    """

    def __init__(
        self,
        ledger: Ledger,
        reports: Path,
        rule: RetentionRule,
        clock: Clock = time.time,
        files: FileKeeper | None = None,
    ) -> None:
        self._ledger = ledger
        self._reports = reports
        self._rule = rule
        self._clock = clock
        self._files = files

    def start(self, supervisor: Supervisor) -> None:
        """Begin to work in the background."""
        self._task = supervisor.start("retention", self._work)

    async def end(self) -> None:
        """Stop; the next process removes what is left."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def delete_surplus(self) -> None:
        """Delete the runs that the rule does not keep."""
        rule = self._rule
        if rule.keep_runs is None and rule.keep_for_s is None:
            return
        before = None if rule.keep_for_s is None else self._clock() - rule.keep_for_s
        with self._ledger.read() as t:
            surplus = deletion_table.find_surplus(t, rule.keep_runs, before)
        for run in surplus:
            with suppress(UnknownRunError, RunInUseError):  # others have had their turn meanwhile
                delete_run(self._ledger, run, self._clock())
            await sleep(_REST_S)

    def forget_keys(self) -> None:
        """Forget the keys of runs that were deleted so long ago that the rule does not keep them."""
        with self._ledger.change() as t:
            submission_table.delete_keys(t, self._clock() - self._rule.keep_keys_s)

    async def clear(self) -> None:
        """Remove all that is left of deleted runs, and give their space back."""
        run = self._find_deletion()
        if run is None:
            return
        while run is not None:
            (self._reports / f"{run}.html").unlink(missing_ok=True)
            with self._ledger.read() as t:
                digests = submission_table.fetch_files(t, run)
            while self._delete_some(run):  # noqa: ASYNC110  # this is work, not waiting
                await sleep(_REST_S)
            if self._files is not None:
                self._files.release(digests)
            run = self._find_deletion()
        while self._ledger.give_back():  # noqa: ASYNC110  # this is work, not waiting
            await sleep(_REST_S)

    def _find_deletion(self) -> str | None:
        with self._ledger.read() as t:
            return deletion_table.find_deletion(t)

    def _delete_some(self, run: str) -> bool:
        with self._ledger.change() as t:
            return deletion_table.delete_some(t, run)

    async def _work(self, health: Health) -> None:
        delete_at = 0.0
        while True:
            if time.monotonic() >= delete_at:
                await self.delete_surplus()
                self.forget_keys()
                if self._files is not None:
                    self._files.sweep()
                delete_at = time.monotonic() + _SURPLUS_EVERY_S
            await self.clear()
            health.note_well()
            await sleep(_LOOK_S)


def delete_run(ledger: Ledger, run: str, now: float) -> None:
    """Begin to delete a run, as `begin_deletion` does, and say so."""
    end = build_end(ledger, run, now)
    with ledger.change() as t:
        lines = deletion_table.begin_deletion(t, run, end)
    lost = f"; {lines:,} of its lines were still waiting for Loki and are lost" if lines else ""
    _log.info("run %s is deleted%s", run, lost, extra={"run": run})

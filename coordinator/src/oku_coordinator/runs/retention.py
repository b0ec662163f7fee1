"""Removes what is left of deleted runs and deletes those that are older or more than they may be.

It works beside everything else, some rows and pages at a time, and goes on where another process ended.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from oku_coordinator.ledger import Ledger
from oku_coordinator.settings import RetentionRule
from oku_core.process.supervision import Health, Supervisor

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_JUDGE_S = 60.0
"""So often are runs looked at that may be too old or too many."""
_REST_S = 0.01
"""Between two transactions; others have their turn."""


class Retention:
    """See the module.

    Args:
        ledger: has the runs.
        reports: where their pages are, if somebody has left any.
        rule: how long they are kept.
        clock: Unix time.
    """

    def __init__(
        self, ledger: Ledger, reports: Path, rule: RetentionRule, clock: Callable[[], float] = time.time
    ) -> None:
        self._ledger = ledger
        self._reports = reports
        self._rule = rule
        self._clock = clock

    def start(self, supervisor: Supervisor) -> None:
        """Begin to work."""
        self._task = supervisor.start("retention", self._work)

    async def end(self) -> None:
        """Stop; what is left is removed by the next process."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def judge(self) -> None:
        """Delete the runs that the rule does not keep."""
        rule = self._rule
        if rule == RetentionRule():
            return
        before = None if rule.keep_for_s is None else self._clock() - rule.keep_for_s
        for run in self._ledger.deletions.find_surplus(rule.keep_runs, before):
            delete_run(self._ledger, run)

    async def clear(self) -> None:
        """Remove all that is left of deleted runs, and give the space back."""
        run = self._ledger.deletions.find()
        if run is None:
            return
        while run is not None:
            (self._reports / f"{run}.html").unlink(missing_ok=True)
            while self._ledger.deletions.delete_some(run):  # noqa: ASYNC110  # it is worked on, not waited for
                await asyncio.sleep(_REST_S)
            run = self._ledger.deletions.find()
        while self._ledger.deletions.give_back():  # noqa: ASYNC110  # likewise
            await asyncio.sleep(_REST_S)

    async def _work(self, health: Health) -> None:
        judge_at = 0.0
        while True:
            if time.monotonic() >= judge_at:
                self.judge()
                judge_at = time.monotonic() + _JUDGE_S
            await self.clear()
            health.note_well()
            await asyncio.sleep(_LOOK_S)


def delete_run(ledger: Ledger, run: str) -> None:
    """Begin to delete a run, as `Ledger.deletions.begin` does, and say so."""
    lines = ledger.deletions.begin(run)
    lost = f"; Loki does not get {lines:,} lines of it that still waited" if lines else ""
    _log.info("run %s is deleted%s", run, lost, extra={"run": run})

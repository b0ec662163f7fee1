"""Deletes runs that are too old or too many, and finds runs by their keys, even after their deletion.

Runs are removed in the background, some rows and pages at a time; a restart continues the work. A repeated
key submits nothing.
"""

import logging
import math
import time
from asyncio import sleep, to_thread
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from oku_coordinator.event_loop import BackgroundService
from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.storage.records import KeyRecord, RunEnd, RunInUseError, RunRecord
from oku_coordinator.ledger.tables import deletion_table, run_table, submission_table
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.run_documents import encode_summary
from oku_coordinator.runs.summary.summaries import build_summary
from oku_coordinator.settings import RetentionRule
from oku_core.process.clock import Clock
from oku_core.process.supervision import Health
from oku_core.spec.spec import Spec
from oku_core.spec.spec_digest import digest_spec, list_differing_keys


class KeyTakenError(Exception):
    """The key belongs to a run with another spec."""

    def __init__(self, record: KeyRecord, differences: list[str]) -> None:
        which = f" (it differs in {', '.join(differences)})" if differences else ""
        super().__init__(f"key {record.key} belongs to run {record.run}, which has another spec{which}")


class RunDeletedError(Exception):
    """The run with a key was deleted.

    Attributes:
        summary: its last summary, as JSON.
    """

    def __init__(self, record: KeyRecord) -> None:
        super().__init__(f"run {record.run}, which has the key {record.key}, was deleted")
        self.summary = record.summary or b"null"


def find_submitted(
    ledger: Ledger, key: str, spec: Spec, deleted_since: float = -math.inf
) -> RunRecord | None:
    """The run that was submitted with a key; None for a new key.

    Args:
        ledger: stores the keys.
        key: the key.
        spec: must equal the spec of the run.
        deleted_since: a run that was deleted before this time is forgotten.

    Raises:
        KeyTakenError: it was submitted with another spec.
        RunDeletedError: it was deleted.
    """
    with ledger.read() as t:
        record = submission_table.fetch_key(t, key)
        if record is None or (record.deleted_at is not None and record.deleted_at < deleted_since):
            return None
        run = None if record.deleted_at is not None else run_table.fetch_run(t, record.run)
    if record.digest != digest_spec(spec):
        raise KeyTakenError(record, [] if run is None else _list_differences(run.spec, spec))
    if run is None:
        raise RunDeletedError(record)
    return run


def _list_differences(spec: Spec, submitted: Spec) -> list[str]:
    """The keys in which a submitted spec differs from a run's, whose engine may be chosen and not given."""
    named = msgspec.structs.replace(submitted, engine=submitted.engine or spec.engine)
    return list_differing_keys(spec, named) or ["engine"]


def build_end(ledger: Ledger, run: str, now: float) -> RunEnd | None:
    """The lasting record of a run that is about to be deleted; None if it was submitted without a key."""
    with ledger.read() as t:
        if submission_table.fetch_key_of_run(t, run) is None:
            return None
    with closing(ledger.open_reader()) as reader, reader.read() as t:
        snapshot = snapshots.fetch_snapshot(t, run)
    return RunEnd(now, encode_summary(build_summary(snapshot, now)))


_log = logging.getLogger(__name__)

_POLL_S = 1.0
_SURPLUS_EVERY_S = 60.0
"""How often the rule is applied."""
_REST_S = 0.01
"""A pause between two transactions, in which others can run."""


class Retention(BackgroundService):
    """Applies a rule to the runs of a ledger.

    Args:
        ledger: stores the runs.
        reports: the folder that may contain reports of runs.
        rule: how long runs are kept.
        clock: Unix time.
        files: stores the files of the runs.
    """

    service_name = "retention"

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

    async def delete_surplus(self) -> None:
        """Delete the runs outside the rule."""
        rule = self._rule
        if rule.keep_runs is None and rule.keep_for_s is None:
            return
        before = None if rule.keep_for_s is None else self._clock() - rule.keep_for_s
        with self._ledger.read() as t:
            surplus = deletion_table.find_surplus(t, rule.keep_runs, before)
        for run in surplus:
            with suppress(UnknownRunError, RunInUseError):  # others could run meanwhile
                await delete_run(self._ledger, run, self._clock())
            await sleep(_REST_S)

    def forget_keys(self) -> None:
        """Delete the keys of runs that were deleted too long ago."""
        with self._ledger.change() as t:
            submission_table.delete_keys(t, self._clock() - self._rule.keep_keys_s)

    async def clear(self) -> None:
        """Remove the remains of deleted runs, and free their space."""
        run = self._find_deletion()
        if run is None:
            return
        while run is not None:
            (self._reports / f"{run}.html").unlink(missing_ok=True)
            with self._ledger.read() as t:
                digests = submission_table.fetch_digests(t, run)
            while self._delete_some(run):  # noqa: ASYNC110  # this is work, not waiting
                await sleep(_REST_S)
            if self._files is not None:
                self._files.release(digests)
            run = self._find_deletion()
        while self._ledger.free_pages():  # noqa: ASYNC110  # this is work, not waiting
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
            health.record_success()
            await sleep(_POLL_S)


async def delete_run(ledger: Ledger, run: str, now: float) -> None:
    """Begin to delete a run with `begin_deletion`, and log it."""
    end = await to_thread(build_end, ledger, run, now)
    with ledger.change() as t:
        lines = deletion_table.begin_deletion(t, run, end)
    lost = f"; {lines:,} of its lines were still waiting for Loki and are lost" if lines else ""
    _log.info("run %s is deleted%s", run, lost, extra={"run": run})

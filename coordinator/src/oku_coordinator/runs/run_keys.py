"""Finds the run that was submitted with a key, also after its deletion: the same key sends nothing twice."""

import math
from contextlib import closing

import msgspec

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.storage.records import KeyRecord, RunEnd, RunRecord
from oku_coordinator.ledger.tables import run_table, submission_table
from oku_coordinator.runs.summaries import build_summary
from oku_core.spec.spec import Spec
from oku_core.spec.spec_digest import digest_spec, list_differences


class KeyTakenError(Exception):
    """A key was given with another spec before."""

    def __init__(self, record: KeyRecord, differences: list[str]) -> None:
        which = f" (it differs in {', '.join(differences)})" if differences else ""
        super().__init__(f"key {record.key} belongs to run {record.run}, which has another spec{which}")


class RunDeletedError(Exception):
    """The run with a key was deleted.

    Attributes:
        summary: how it stood then, as JSON.
    """

    def __init__(self, record: KeyRecord) -> None:
        super().__init__(f"run {record.run}, which has the key {record.key}, was deleted")
        self.summary = record.summary or b"null"


def find_submitted(
    ledger: Ledger, key: str, spec: Spec, deleted_since: float = -math.inf
) -> RunRecord | None:
    """The run that was submitted with a key; None if the key is new.

    Args:
        ledger: keeps the keys.
        key: the key.
        spec: is to be that of the run.
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
        raise KeyTakenError(record, [] if run is None else list_differences(run.spec, spec))
    if run is None:
        raise RunDeletedError(record)
    return run


def build_end(ledger: Ledger, run: str, now: float) -> RunEnd | None:
    """What is kept of a run that is about to be deleted; None if it was submitted without a key."""
    with ledger.read() as t:
        if submission_table.fetch_key_of_run(t, run) is None:
            return None
    with closing(ledger.open_reader()) as reader, reader.read() as t:
        snapshot = snapshots.fetch_snapshot(t, run)
    return RunEnd(now, msgspec.json.encode(build_summary(snapshot, now)))

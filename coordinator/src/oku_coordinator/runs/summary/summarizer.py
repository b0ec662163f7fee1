"""Builds summaries beside the event loop: with a hundred targets in a hundred stages, one takes a second.

The long work needs no transaction of the ledger. Accounts in memory are frozen, a few at a time, and each is
summarized once per change. Others are read through a separate connection; the last summary is kept as long as
nothing else of its run has changed.
"""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.rules.snapshots import RunFrame, Snapshot
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.accounts import account_table
from oku_coordinator.runs.summary.part_summaries import FigureCache
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting.account import Account
from oku_core.summary.summary import Summary

_FROZEN_AT_ONCE = 500
"""Accounts; it takes some 10 ms, during which the ledger is blocked."""


class _Kept(NamedTuple):
    """The last summary of a run at rest, and the run without its accounts."""

    frame: RunFrame
    served: int | None
    summary: Summary


class _YieldingCache(FigureCache):
    """Builds figures while the ledger is not being changed."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def build(self, key: tuple[str, str | None], account: Account) -> dict[str, Any]:
        """The same figures."""
        self._ledger.yield_to_change()
        return super().build(key, account)


class Summarizer:
    """Builds one summary at a time.

    Args:
        ledger: has the runs.
        clock: Unix time.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._lock = asyncio.Lock()
        self._run = ""
        self._figures = _YieldingCache(ledger)
        self._kept: _Kept | None = None

    async def build(self, record: RunRecord, served: int | None) -> tuple[RunRecord, Summary]:
        """The summary of a run without notices, and the record that it was built from.

        Args:
            record: the run, read before the query of the delay servers.
            served: their count, if known.

        Raises:
            UnknownRunError: there is no such run.
            StorageError: the ledger cannot be read.
        """
        async with self._lock:
            return await asyncio.to_thread(self._build, record, served)

    def _build(self, before: RunRecord, served: int | None) -> tuple[RunRecord, Summary]:
        run = before.run
        if run != self._run:
            self._run, self._figures, self._kept = run, _YieldingCache(self._ledger), None
        if self._freeze(run):
            with self._ledger.read() as t:
                snapshot = snapshots.fetch_snapshot(t, run)
            return self._sum_up(before, snapshot, served)
        with closing(self._ledger.open_reader()) as reader, reader.read() as t:
            frame = snapshots.fetch_frame(t, run)
            kept = self._kept
            if kept is not None and (kept.frame, kept.served, before.is_at_rest) == (frame, served, True):
                return frame.record, kept.summary
            snapshot = snapshots.fetch_snapshot(t, run)
        record, summary = self._sum_up(before, snapshot, served)
        # The waiting time of a run changes at every moment.
        self._kept = _Kept(frame, served, summary) if before.is_at_rest else None
        return record, summary

    def _sum_up(self, before: RunRecord, snapshot: Snapshot, served: int | None) -> tuple[RunRecord, Summary]:
        record = snapshot.record
        is_unkept = before.is_at_rest and record.served is None
        if served is not None and (is_unkept or not record.is_at_rest):
            record = replace(record, served=served)
            snapshot = replace(snapshot, record=record)
        return record, build_summary(snapshot, self._clock(), figures=self._figures)

    def _freeze(self, run: str) -> bool:
        """Freeze the accounts of a run before its snapshot does, which is quick afterwards.

        Returns:
            Whether they are in memory, like the accounts of the newest active run.
        """
        begin, is_left = 0, True
        while is_left:
            with self._ledger.read() as t:
                if not account_table.is_in_memory(t, run):
                    return False
                parts = account_table.fetch_account(t, run).parts
                for account in islice(parts.values(), begin, begin + _FROZEN_AT_ONCE):
                    account.freeze()
                begin += _FROZEN_AT_ONCE
                is_left = begin < len(parts)
        return True

"""The outbox of a ledger: the lines that wait for Loki, and the summaries that it is still owed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from oku_coordinator.ledger.rules import tick_lines
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import history_table, outbox_table, run_table
from oku_coordinator.ledger.tables.outbox_table import OutboxLine, OutboxSize
from oku_core.results.event import Event
from oku_core.results.lines import Fields, LineKind

_NO_PARTS: Mapping[LineKind, Iterable[Fields]] = MappingProxyType({})


class LedgerOutbox:
    """What can be done with the outbox."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def put_summary(
        self,
        run: str,
        fields: Fields,
        events: Iterable[Event],
        now: float,
        parts: Mapping[LineKind, Iterable[Fields]] = _NO_PARTS,
    ) -> bool:
        """Put the summary of a run at rest, its phases and targets, and its flags as events, once each rest.

        So are the ticks of its last seconds, if the coordinator that made these could not put them there.

        Returns whether it was owed: the run is published, and its summary was not there yet.
        """

        def put(transaction: Transaction) -> bool:
            if not run_table.settle_summary(transaction, run):
                return False
            tick_lines.put_settled(transaction, run, math.inf)
            outbox_table.put(transaction, run, LineKind.SUMMARY, now, [fields])
            for kind, lines in parts.items():
                outbox_table.put(transaction, run, kind, now, lines)
            for event in events:
                history_table.note(transaction, run, event)
            return True

        return self._file.change(put)

    def find_owing(self) -> list[str]:
        """The runs at rest whose summary has not been put into the outbox yet."""
        return self._file.read(run_table.find_owing)

    def take(
        self, most_lines: int, most_bytes: int, now: float, wall_ahead_s: float = 0.0
    ) -> list[OutboxLine]:
        """The oldest lines of the outbox, which stay there until they are removed.

        `wall_ahead_s` says how far the wall clock is ahead of the one that `now` is of.
        """
        return self._file.change(
            lambda transaction: outbox_table.take_batch(
                transaction, most_lines, most_bytes, now, wall_ahead_s
            )
        )

    def remove(self, lines: Sequence[OutboxLine]) -> None:
        """Remove lines that Loki has taken, or never will take."""
        self._file.change(lambda transaction: outbox_table.remove(transaction, lines))

    def measure(self) -> OutboxSize:
        """How much waits in the outbox."""
        return self._file.read(outbox_table.measure)

    def drop(self, most_bytes: int) -> dict[str, int]:
        """Drop some of the oldest lines that may be lost if the outbox is too large; how many, by run."""
        return self._file.change(lambda transaction: outbox_table.drop_oldest(transaction, most_bytes))

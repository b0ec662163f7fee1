"""The history of the runs of a ledger: samples, events, and what became of leases and slices."""

import functools
import math
from collections.abc import Iterable, Iterator

from oku_coordinator.ledger.rules import tick_lines
from oku_coordinator.ledger.rules.planned_seconds import fetch_planned_seconds
from oku_coordinator.ledger.storage.records import History
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import history_table, outbox_table, slice_table, work_table
from oku_coordinator.ledger.tables.run_table import fetch_state
from oku_core.accounting.interval import Slice
from oku_core.accounting.run_state import ACTIVE_STATES
from oku_core.results.event import Event, EventType
from oku_core.results.lease_span import LeaseSpan
from oku_core.results.lines import Fields, LineKind
from oku_core.results.sample import Sample
from oku_core.spec.values.quantity import format_duration

PAGE = 1000
"""How many rows are read at once."""


class LedgerHistory:
    """What can be done with the history of runs."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def keep_sample(
        self,
        run: str,
        sample: Sample,
        lines: Iterable[tuple[LineKind, Iterable[Fields]]] = (),
        events: Iterable[Event] = (),
        *,
        state: str = "",
        settled_to: float = -math.inf,
    ) -> None:
        """Keep a second of a run, with the lines that were made of it, and events.

        Args:
            run: its id.
            sample: the second; outcomes that it has count in addition to those of the series.
            lines: those that are made of it at once.
            events: what happened in it.
            state: that the run is in.
            settled_to: samples that end by this time get their ticks now, with all that the series has of
                their seconds.
        """

        def keep(transaction: Transaction) -> None:
            history_table.keep_sample(transaction, run, sample, state)
            tick_lines.put_settled(transaction, run, settled_to)
            history_table.thin_out(transaction, run)
            for kind, fields in lines:
                outbox_table.put(transaction, run, kind, sample.at, fields)
            for event in events:
                history_table.note(transaction, run, event)

        self._file.change(keep)

    def put_coverage(self, run: str, at: float, lines: Iterable[Fields]) -> None:
        """Keep lines of coverage for Loki, unless the run has come to rest since: it has lines of its end."""

        def put(transaction: Transaction) -> None:
            if fetch_state(transaction, run) in ACTIVE_STATES:
                outbox_table.put(transaction, run, LineKind.COVERAGE, at, lines)

        self._file.change(put)

    def note(self, run: str, events: Iterable[Event]) -> None:
        """Keep events of a run."""

        def note(transaction: Transaction) -> None:
            for event in events:
                history_table.note(transaction, run, event)

        self._file.change(note)

    def note_clock_step(self, run: str, step_s: float, now: float) -> None:
        """Note that the coordinator's clock was set while a run was active."""

        def note(transaction: Transaction) -> None:
            leased = slice_table.sum_lengths(transaction, run).leased
            work_table.note_clock_step(transaction, run, leased, step_s)
            how = f"{'forward' if step_s > 0 else 'back'} by {format_duration(abs(step_s))}"
            text = f"the coordinator's clock was set {how}"
            history_table.note(transaction, run, Event(at=now, type=EventType.CLOCK_SET, text=text))

        self._file.change(note)

    def note_clock_skew(self, run: str, bound_s: float) -> None:
        """Note that a worker knew the clock of a run's schedule to so many seconds only."""
        self._file.change(lambda transaction: work_table.note_clock_skew(transaction, run, bound_s))

    def fetch(self, run: str) -> History:
        """The samples and events of a run at one instant."""

        def fetch(transaction: Transaction) -> History:
            samples = history_table.fetch_samples(transaction, run)
            if samples:
                planned = fetch_planned_seconds(transaction, run)
                samples = [planned.add_to(sample) for sample in samples]
            return History(samples=samples, events=history_table.fetch_events(transaction, run))

        return self._file.read(fetch)

    def fetch_events(self, run: str) -> list[Event]:
        """The events of a run, oldest first."""
        return self._file.read(lambda transaction: history_table.fetch_events(transaction, run))

    def read_leases(self, run: str) -> Iterator[list[LeaseSpan]]:
        """What became of the leases of a run, as they were cut; each page is read when it is taken."""
        after = ""
        fetch = functools.partial(history_table.fetch_lease_spans, run=run, most=PAGE)
        while spans := self._file.read(functools.partial(fetch, after=after)):
            yield spans
            after = spans[-1].id

    def read_slices(self, run: str) -> Iterator[list[Slice]]:
        """The slices of a run; each page is read when it is taken."""
        start = 0
        fetch = functools.partial(slice_table.fetch_some_slices, run=run, most=PAGE)
        while slices := self._file.read(functools.partial(fetch, start=start)):
            yield slices
            start = slices[-1].stop

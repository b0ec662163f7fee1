"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

Each public method that changes something is one transaction, and each transaction ends with the check of
the first law for every run that it touched. A breach rolls the transaction back and ends the run as failed.
"""

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from oku_coordinator.ledger import (
    account_table,
    conservation,
    deletion,
    history_table,
    intake,
    lease_table,
    lifecycle,
    outbox_table,
    reclaim,
    run_table,
    server_table,
    slice_table,
)
from oku_coordinator.ledger.account import Account
from oku_coordinator.ledger.outbox_table import OutboxLine, OutboxSize
from oku_coordinator.ledger.records import (
    BreachError,
    History,
    LeaseRecord,
    ListedRun,
    RunRecord,
    Snapshot,
    Standing,
)
from oku_coordinator.ledger.transaction import LedgerFile, Transaction
from oku_core.accounting.interval import Lengths, Slice
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Message
from oku_core.quantity import format_duration
from oku_core.results.event import Event, EventType
from oku_core.results.lease_span import LeaseSpan
from oku_core.results.lines import Fields, LineKind
from oku_core.results.sample import Sample
from oku_core.results.summary import ProcessSummary
from oku_core.spec.spec import Spec

_T = TypeVar("_T")

_log = logging.getLogger(__name__)

_DELETED_AT_ONCE = 500
"""Rows; takes some milliseconds."""
_PAGES_AT_ONCE = 50
"""Of 4 KiB; takes up to 50 ms when the write-ahead log is brought into the file meanwhile."""
_PAGE = 1000
"""Rows that are read at once."""


class Ledger:
    """See the module. Safe to call from several threads; every time is Unix time, given by the caller.

    Methods that change something raise `BreachError`, a `ConservationError`, when the account of a run would
    not balance, and `sqlite3.Error` when the file cannot be written; both leave the ledger as it was, but
    that after a breach the run has failed.
    """

    def __init__(self, path: Path, *, read_only: bool = False, publishes: bool = False) -> None:
        """Open the ledger at `path`.

        Args:
            path: of its file.
            read_only: whether another process may write.
            publishes: whether lines of the runs that are created or resumed here are kept for Loki.
        """
        self._path = path
        self._publishes = publishes
        self._file = LedgerFile(path, conservation.finish, read_only=read_only)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def open_reader(self) -> "Ledger":
        """The same ledger for somebody who reads much: nobody waits for him, nor he for anybody."""
        return Ledger(self._path, read_only=True)

    # Runs

    def create_run(self, run: str, spec: Spec, now: float) -> RunRecord:
        """Enter a new run; its whole request space is pending."""

        def create(transaction: Transaction) -> RunRecord:
            run_table.insert_run(transaction, run, spec, now, is_published=self._publishes)
            lifecycle.note_submission(transaction, run, now)
            return run_table.fetch_run(transaction, run)

        return self._change(create, now)

    def fetch_run(self, run: str) -> RunRecord:
        """One run; `UnknownRunError` when there is none of that name."""
        return self._file.read(lambda transaction: run_table.fetch_run(transaction, run))

    def fetch_runs(self, most: int = -1, after: str = "") -> list[ListedRun]:
        """Runs, newest first, without their specs: all, or so many at most, behind the `cursor` of one."""
        return self._file.read(functools.partial(run_table.fetch_runs, most=most, after=after))

    def fetch_current_run(self) -> RunRecord | None:
        """The run that has its turn: the active one, else the one that has waited longest."""
        return self._file.read(run_table.fetch_current_run)

    def count_queued(self) -> int:
        """How many runs are not at rest: those that wait, and the active one."""
        return len(self._file.read(run_table.fetch_live_runs))

    def requeue(self, run: str, now: float, reason: str) -> None:
        """Put a pending run to the end of the queue, for a reason."""
        self._change(lambda transaction: lifecycle.requeue(transaction, run, now, reason), now)

    def change_state(self, run: str, state: RunState, now: float, reason: str = "") -> RunRecord:
        """Put a run into another state.

        Raises:
            UnknownRunError: there is none.
            TransitionError: it cannot get there from where it is.
        """

        def change(transaction: Transaction) -> RunRecord:
            if state == RunState.PENDING:
                run_table.set_published(transaction, run, is_published=self._publishes)
            lifecycle.enter_state(transaction, run, state, now, reason)
            lifecycle.follow_up(transaction, run, now)
            return run_table.fetch_run(transaction, run)

        return self._change(change, now)

    def give_up(self, run: str, state: RunState, now: float, reason: str) -> None:
        """Take back all that is out of a running run, and put it into this state of rest."""
        self._change(lambda transaction: reclaim.give_up_run(transaction, run, state, now, reason), now)

    def set_served(self, run: str, served: int) -> None:
        """Keep what the delay servers counted for a run, if it is at rest."""
        self._file.change(lambda transaction: run_table.set_served(transaction, run, served))

    def note_servers(self, run: str, stores: Iterable[str], now: float) -> None:
        """These stores of delay servers were seen with a run now."""
        self._file.change(lambda transaction: server_table.note_servers(transaction, run, stores, now))

    def fetch_servers(self, run: str) -> dict[str, float]:
        """The stores of the delay servers that were seen with a run, and when each was last seen."""
        return self._file.read(lambda transaction: server_table.fetch_servers(transaction, run))

    def keep_processes(self, run: str, processes: Iterable[ProcessSummary]) -> None:
        """Keep the largest memory of the processes beside the workers."""
        self._file.change(lambda transaction: account_table.keep_processes(transaction, run, processes))

    def park_interrupted(self, now: float, *, but: str | None = None) -> None:
        """Pause what a stack left running when it was killed; only for a stack that is about to start.

        Its leases are taken back: nobody has them any more. The run `but` keeps its state, to go on. A run
        that does not balance has failed after this, the others are parked all the same.
        """
        for run in self._file.read(run_table.fetch_live_runs):
            park = functools.partial(reclaim.park_run, run=run, now=now, goes_on=run == but)
            try:
                self._change(park, now)
            except BreachError:
                _log.exception("a run has failed", extra={"run": run})

    def begin_deletion(self, run: str) -> int:
        """Delete a run: from now on there is none, what is kept of it goes with `delete_some`.

        Returns how many of its lines wait for Loki, which does not get them any more.

        Raises:
            UnknownRunError: there is none.
            RunInUseError: it is neither over nor paused.
        """

        def begin(transaction: Transaction) -> int:
            deletion.begin_deletion(transaction, run)
            return outbox_table.count_lines(transaction, run)

        return self._file.change(begin)

    def find_deletion(self) -> str | None:
        """A deleted run of which something is left."""
        return self._file.read(deletion.find_deletion)

    def delete_some(self, run: str) -> bool:
        """Remove some of what is left of a deleted run; whether there may be more."""
        return self._file.change(lambda transaction: deletion.delete_some(transaction, run, _DELETED_AT_ONCE))

    def find_surplus(self, most: int | None, ended_before: float | None) -> list[str]:
        """Some of the runs that are over and more than so many, or over since before a time."""
        return self._file.read(lambda transaction: deletion.find_surplus(transaction, most, ended_before))

    def give_back(self) -> bool:
        """Give some of the space that nothing needs back to the file system; whether there may be more.

        A ledger that an older Oku made does that with `rebuild` alone; until then the space is used again.
        """
        return self._file.give_back(_PAGES_AT_ONCE)

    def rebuild(self) -> None:
        """Write the file anew if that is needed for `give_back`; takes its time, and as much room again."""
        self._file.rebuild()

    # Leases

    def cut_lease(self, run: str, size: int, now: float) -> LeaseRecord | None:
        """Lease the first `size` pending indices or fewer; None when none is pending or it is not running."""
        return next(iter(self.cut_leases(run, [lambda _: size], now)), None)

    def cut_leases(self, run: str, choices: Sequence[Callable[[int], int]], now: float) -> list[LeaseRecord]:
        """The same several times in one transaction, as long as there is something to lease.

        Each choice gives the size of one lease for what is pending then.
        """
        return self._change(lambda transaction: lease_table.cut_leases(transaction, run, choices, now), now)

    def fetch_active_leases(self, run: str) -> list[LeaseRecord]:
        """The leases of a run that are out."""
        return self._file.read(lambda transaction: lease_table.fetch_active_leases(transaction, run))

    def find_run(self, lease: str) -> str | None:
        """The run of a lease, in whatever state it is; None when there is no such lease."""
        record = self._file.read(lambda transaction: lease_table.find_lease(transaction, lease))
        return record.run if record else None

    def count_held(self, run: str) -> Counter[str | None]:
        """How many leases of a run each worker has; None stands for those that nobody has claimed."""
        return self._file.read(lambda transaction: lease_table.count_held(transaction, run))

    def fetch_pending(self, run: str) -> int:
        """How many requests of a run are in no lease and not accounted."""
        return self._file.read(lambda transaction: slice_table.sum_lengths(transaction, run).pending)

    def find_void(self, leases: Iterable[str]) -> list[str]:
        """Which of these leases nobody waits for any more."""
        return self._file.read(lambda transaction: lease_table.find_void(transaction, leases))

    def expire_leases(self, leases: Iterable[str], reason: ExpiryReason, now: float) -> list[str]:
        """Take active leases back, all in one transaction: their ranges are pending again.

        Returns those that were active.
        """
        return self._change(
            lambda transaction: [
                lease for lease in leases if reclaim.expire_lease(transaction, lease, reason, now)
            ],
            now,
        )

    # Messages

    def apply(self, messages: Sequence[Message], now: float) -> list[MessageVerdict]:
        """Take in claims and reports, all in one transaction; says of each what it was.

        Raises:
            BreachError: the account of a run would not balance. Nothing was taken in, the run has failed;
                what the other runs got can be applied again without it.
        """
        return self._change(
            lambda transaction: [intake.take_in(transaction, message, now) for message in messages], now
        )

    # History and outbox

    def keep_sample(
        self,
        run: str,
        sample: Sample,
        lines: Iterable[tuple[LineKind, Iterable[Fields]]] = (),
        events: Iterable[Event] = (),
    ) -> None:
        """Keep a second of a run, with the lines that are made of it, and events."""

        def keep(transaction: Transaction) -> None:
            history_table.keep_sample(transaction, run, sample)
            for kind, fields in lines:
                outbox_table.put(transaction, run, kind, sample.at, fields)
            for event in events:
                history_table.note(transaction, run, event)

        self._file.change(keep)

    def note(self, run: str, events: Iterable[Event]) -> None:
        """Keep events of a run."""

        def note(transaction: Transaction) -> None:
            for event in events:
                history_table.note(transaction, run, event)

        self._file.change(note)

    def note_clock_step(self, run: str, step_s: float, now: float) -> None:
        """The coordinator's clock was set while a run was active."""

        def note(transaction: Transaction) -> None:
            leased = slice_table.sum_lengths(transaction, run).leased
            account_table.note_clock_step(transaction, run, leased, step_s)
            how = f"{'forward' if step_s > 0 else 'back'} by {format_duration(abs(step_s))}"
            text = f"the coordinator's clock was set {how}"
            history_table.note(transaction, run, Event(at=now, type=EventType.CLOCK_SET, text=text))

        self._file.change(note)

    def put_summary(self, run: str, fields: Fields, events: Iterable[Event], now: float) -> bool:
        """Put the summary of a run at rest, and its flags as events, into the outbox, once for each rest.

        Returns whether it was wanted: the run is published, and it was not there yet.
        """

        def put(transaction: Transaction) -> bool:
            if not transaction.execute(
                "UPDATE runs SET owes_summary = 0 WHERE run = ? AND owes_summary = 1", run
            ):
                return False
            outbox_table.put(transaction, run, LineKind.SUMMARY, now, [fields])
            for event in events:
                history_table.note(transaction, run, event)
            return True

        return self._file.change(put)

    def fetch_owing(self) -> list[str]:
        """The runs at rest whose summary has not been put into the outbox."""
        return self._file.read(
            lambda transaction: [
                row["run"]
                for row in transaction.select(
                    "SELECT run FROM runs INDEXED BY owing_runs WHERE owes_summary = 1"
                )
            ]
        )

    def take_lines(
        self, most_lines: int, most_bytes: int, now: float, wall_ahead_s: float = 0.0
    ) -> list[OutboxLine]:
        """The oldest lines of the outbox; they stay there until `remove_lines`.

        `wall_ahead_s` says how far the wall clock is ahead of the one that `now` is of.
        """

        def take(transaction: Transaction) -> list[OutboxLine]:
            return outbox_table.take_batch(transaction, most_lines, most_bytes, now, wall_ahead_s)

        return self._file.change(take)

    def remove_lines(self, lines: Sequence[OutboxLine]) -> None:
        """Loki has taken these, or will never do."""
        self._file.change(lambda transaction: outbox_table.remove(transaction, lines))

    def measure_outbox(self) -> OutboxSize:
        """How much waits in the outbox."""
        return self._file.read(outbox_table.measure)

    def drop_lines(self, most_bytes: int) -> dict[str, int]:
        """Drop some of the oldest lines that may be lost while an outbox is too large; how many, by run."""
        return self._file.change(lambda transaction: outbox_table.drop_oldest(transaction, most_bytes))

    def fetch_history(self, run: str) -> History:
        """How a run went, as of one moment."""
        return self._file.read(
            lambda transaction: History(
                samples=history_table.fetch_samples(transaction, run),
                events=history_table.fetch_events(transaction, run),
            )
        )

    def read_leases(self, run: str) -> Iterator[list[LeaseSpan]]:
        """What became of the leases of a run, as they were cut, some at a time, each time as it is then."""
        after = ""
        fetch = functools.partial(history_table.fetch_lease_spans, run=run, most=_PAGE)
        while marks := self._file.read(functools.partial(fetch, after=after)):
            yield marks
            after = marks[-1].id

    def read_slices(self, run: str) -> Iterator[list[Slice]]:
        """The request space of a run, likewise."""
        start = 0
        fetch = functools.partial(slice_table.fetch_some_slices, run=run, most=_PAGE)
        while slices := self._file.read(functools.partial(fetch, start=start)):
            yield slices
            start = slices[-1].stop

    # Accounts

    def fetch_standing(self, run: str) -> Standing:
        """How far a run is; costs the same however long it is."""
        return self._file.read(lambda transaction: _build_standing(transaction, run))

    def fetch_snapshot(self, run: str) -> Snapshot:
        """A run with everything that is kept for it, as of one moment, also while another process writes."""
        return self._file.read(lambda transaction: _build_snapshot(transaction, run))

    def fetch_lengths(self, run: str) -> Lengths:
        """How much of a run is pending, leased and accounted; raises `BreachError` on a breach."""
        return self._file.read(lambda transaction: conservation.check_run(transaction, run))

    def fetch_taken_back(self, run: str) -> list[tuple[int, int]]:
        """The ranges of leases that were taken back and may have been sent, `[start, stop)`."""
        return self._file.read(lambda transaction: lease_table.fetch_taken_back(transaction, run))

    def fetch_slices(self, run: str) -> list[Slice]:
        """The request space of a run as it is cut now."""
        return self._file.read(lambda transaction: slice_table.fetch_slices(transaction, run))

    def _change(self, work: Callable[[Transaction], _T], now: float) -> _T:
        try:
            return self._file.change(work)
        except BreachError as error:
            run, detail = error.run, error.detail
            self._file.change(lambda transaction: lifecycle.fail(transaction, run, detail, now))
            raise


def _build_standing(transaction: Transaction, run: str) -> Standing:
    return Standing(
        record=run_table.fetch_run(transaction, run),
        lengths=slice_table.sum_lengths(transaction, run),
        outcomes=account_table.fetch_outcomes(transaction, run),
        leases=lease_table.fetch_active_ids(transaction, run),
    )


def _build_snapshot(transaction: Transaction, run: str) -> Snapshot:
    record = run_table.fetch_run(transaction, run)
    breach = record.reason if record.is_broken else None
    try:
        lengths = conservation.check_run(transaction, run)
    except BreachError as error:
        breach = breach or error.detail
        lengths = slice_table.sum_lengths(transaction, run)
    try:
        account = account_table.fetch_account(transaction, run).copy()
    except BreachError:  # the check has said so
        account = Account()
    return Snapshot(
        record=record,
        lengths=lengths,
        account=account,
        workers=account_table.fetch_workers(transaction, run),
        processes=account_table.fetch_processes(transaction, run),
        flags=account_table.fetch_flags(transaction, run),
        breach=breach,
    )

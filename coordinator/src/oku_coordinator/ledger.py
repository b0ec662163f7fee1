"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

Each public method that changes something is one transaction, and each transaction ends with the check of
the first law for every run that it touched. A breach rolls the transaction back and ends the run as failed.
"""

import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from oku_coordinator.record import (
    Account,
    ExpiryReason,
    LeaseRecord,
    LeaseState,
    RunRecord,
    Snapshot,
    Verdict,
    build_account,
    build_account_columns,
    build_lease_record,
    build_run_record,
)
from oku_coordinator.schema import open_database
from oku_coordinator.validity import judge_report
from oku_core.interval import (
    ConservationError,
    Lengths,
    Slice,
    SliceState,
    build_partition,
    check_partition,
    cut,
    settle,
)
from oku_core.lease import Claim, Message, Report, find_fault
from oku_core.outcome import OUTCOMES
from oku_core.run import ACTIVE_STATES, FINAL_STATES, RunState, check_transition
from oku_core.spec import Spec
from oku_core.summary import Flag, WorkerSummary

_T = TypeVar("_T")

_CLOSING_STATES = {RunState.PAUSING: RunState.PAUSED, RunState.CANCELLING: RunState.CANCELLED}


class UnknownRunError(Exception):
    """There is no such run."""

    def __init__(self, run: str) -> None:
        super().__init__(f"there is no run {run}")


class Ledger:
    """See the module. Safe to call from several threads; every time is Unix time, given by the caller."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._database = open_database(path, read_only=read_only)
        self._mutex = threading.RLock()
        self._is_read_only = read_only
        self._accounts: dict[str, Account] = {}
        self._touched: set[str] = set()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    # Runs

    def create_run(self, run: str, spec: Spec, now: float) -> RunRecord:
        """Enter a new run; its whole request space is pending."""

        def create() -> None:
            self._database.execute(
                "INSERT INTO runs (run, name, spec, requests, state, queued_at, created_at, outcomes)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run, spec.name, msgspec.json.encode(spec).decode(), spec.requests, RunState.PENDING, now, now,
                 f"{[0] * len(OUTCOMES)}"),
            )  # fmt: skip
            self._insert_slices(run, [Slice(0, spec.requests, SliceState.PENDING)])

        self._transact(create)
        return self.fetch_run(run)

    def fetch_run(self, run: str) -> RunRecord:
        """One run; `UnknownRunError` when there is none of that name."""
        return build_run_record(self._row(run))

    def fetch_runs(self) -> list[RunRecord]:
        """All runs, newest first."""
        with self._mutex:
            rows = self._database.execute(
                "SELECT * FROM runs ORDER BY created_at DESC, rowid DESC"
            ).fetchall()
        return [build_run_record(row) for row in rows]

    def fetch_next_run(self) -> RunRecord | None:
        """The run that has its turn: the active one, else the one that has waited longest."""
        with self._mutex:
            row = self._database.execute(
                "SELECT * FROM runs WHERE state IN ('running', 'pausing', 'cancelling', 'pending')"
                " ORDER BY state = 'pending', queued_at, rowid LIMIT 1"
            ).fetchone()
        return build_run_record(row) if row else None

    def change_state(self, run: str, state: RunState, now: float, reason: str = "") -> RunRecord:
        """Put a run into another state.

        Raises:
            UnknownRunError: there is none.
            TransitionError: it cannot get there from where it is.
        """

        def change() -> None:
            self._enter_state(run, state, now, reason)
            self._follow_up(run, now)

        self._transact(change)
        return self.fetch_run(run)

    def set_served(self, run: str, served: int) -> None:
        """Keep what the delay servers counted for a run."""
        self._transact(
            lambda: self._database.execute("UPDATE runs SET served = ? WHERE run = ?", (served, run))
        )

    def park_interrupted(self, now: float, *, but: str | None = None) -> None:
        """Pause what a stack left running when it was killed; only for a stack that is about to start.

        Its leases are taken back: nobody has them any more. The run `but` stays as it is, to go on.
        """
        for record in self.fetch_runs():
            if record.state not in ACTIVE_STATES and record.state != RunState.PENDING:
                continue
            leases = [lease.id for lease in self.fetch_active_leases(record.run)]
            self.expire_leases(leases, ExpiryReason.STACK_LOST, now)
            state = self.fetch_run(record.run).state
            if record.run != but and (state in ACTIVE_STATES or state == RunState.PENDING):
                self.change_state(record.run, RunState.PAUSED, now, ExpiryReason.STACK_LOST)

    # Leases

    def cut_lease(self, run: str, size: int, now: float) -> LeaseRecord | None:
        """Lease the first `size` pending indices of a run, or fewer; None when none is pending."""

        def cut_first() -> str | None:
            row = self._database.execute(
                "SELECT start, stop FROM slices WHERE run = ? AND state = 'pending' ORDER BY start LIMIT 1",
                (run,),
            ).fetchone()
            if row is None:
                return None
            pieces = cut(Slice(row["start"], row["stop"], SliceState.PENDING), size)
            self._database.execute("DELETE FROM slices WHERE run = ? AND start = ?", (run, row["start"]))
            self._insert_slices(run, pieces)
            self._database.execute("UPDATE runs SET leases_cut = leases_cut + 1 WHERE run = ?", (run,))
            number = self._row(run)["leases_cut"]
            # The random part keeps a forger from naming a lease that he has not seen.
            lease = f"{run}.{number}.{secrets.token_hex(4)}"
            self._database.execute(
                "INSERT INTO leases (id, run, start, stop, state, cut_at) VALUES (?, ?, ?, ?, ?, ?)",
                (lease, run, pieces[0].start, pieces[0].stop, LeaseState.ACTIVE, now),
            )
            self._touched.add(run)
            return lease

        lease = self._transact(cut_first)
        return build_lease_record(self._lease_row(lease)) if lease else None

    def fetch_active_leases(self, run: str) -> list[LeaseRecord]:
        """The leases of a run that are out."""
        with self._mutex:
            rows = self._database.execute(
                "SELECT * FROM leases WHERE run = ? AND state = 'active' ORDER BY cut_at, start", (run,)
            ).fetchall()
        return [build_lease_record(row) for row in rows]

    def fetch_pending(self, run: str) -> int:
        """How many requests of a run are in no lease and not accounted."""
        with self._mutex:
            row = self._database.execute(
                "SELECT coalesce(sum(stop - start), 0) FROM slices WHERE run = ? AND state = 'pending'",
                (run,),
            ).fetchone()
        return int(row[0])

    def find_expired(self, leases: Iterable[str]) -> list[str]:
        """Which of these leases were taken back."""
        names = list(leases)
        with self._mutex:
            rows = self._database.execute(
                "SELECT id FROM leases WHERE state = 'expired' AND id IN (SELECT value FROM json_each(?))",
                (json.dumps(names),),
            ).fetchall()
        return [row["id"] for row in rows]

    def expire_leases(self, leases: Iterable[str], reason: ExpiryReason, now: float) -> int:
        """Take active leases back: their ranges are pending again. Returns how many were active."""

        def expire_all() -> int:
            return sum(self._expire(lease, reason, now) for lease in leases)

        return self._transact(expire_all)

    # Messages

    def apply(self, messages: Sequence[Message], now: float) -> list[Verdict]:
        """Take in claims and reports, all in one transaction; says of each what it was.

        Raises:
            ConservationError: the account would not balance; nothing was taken in, the run has failed.
        """
        return self._transact(lambda: [self._apply(message, now) for message in messages])

    # Accounts

    def fetch_snapshot(self, run: str) -> Snapshot:
        """A run with everything that is kept for it, as of one moment, also while another process writes."""
        with self._mutex:
            self._database.execute("BEGIN")
            try:
                if self._is_read_only:
                    self._accounts.clear()
                record, account = self.fetch_run(run), self._account(run)
                return Snapshot(
                    record=record,
                    lengths=self._check(run),
                    account=account.copy(),
                    workers=self._fetch_workers(run),
                    flags=self._fetch_flags(run),
                )
            finally:
                self._database.execute("COMMIT")

    def fetch_lengths(self, run: str) -> Lengths:
        """How much of a run is pending, leased and accounted; raises `ConservationError` on a breach."""
        with self._mutex:
            return self._check(run)

    def fetch_slices(self, run: str) -> list[Slice]:
        """The request space of a run as it is cut now."""
        with self._mutex:
            return self._slices(run)

    # One transaction

    def _transact(self, work: Callable[[], _T]) -> _T:
        with self._mutex:
            self._touched.clear()
            self._database.execute("BEGIN IMMEDIATE")
            try:
                result = work()
                for run in self._touched:
                    self._check(run)
                self._database.execute("COMMIT")
            except BaseException as error:
                # A failed COMMIT may have ended the transaction already.
                with suppress(sqlite3.OperationalError):
                    self._database.execute("ROLLBACK")
                self._accounts.clear()
                if isinstance(error, ConservationError):
                    self._fail(self._touched, str(error))
                raise
            return result

    def _fail(self, runs: Iterable[str], reason: str) -> None:
        # Outside every check: this is the record that a check found a breach.
        self._database.executemany(
            "UPDATE runs SET state = ?, reason = ?, active_since = NULL WHERE run = ?",
            [(RunState.FAILED, reason, run) for run in runs],
        )

    def _check(self, run: str) -> Lengths:
        lengths = check_partition(self._slices(run), self._row(run)["requests"])
        self._account(run).check(lengths)
        leased = self._database.execute(
            "SELECT coalesce(sum(stop - start), 0) FROM leases WHERE run = ? AND state = 'active'", (run,)
        ).fetchone()[0]
        if leased != lengths.leased:
            raise ConservationError(f"active leases sum to {leased}, leased are {lengths.leased}")
        by_workers = self._database.execute(
            "SELECT coalesce(sum(requests), 0) FROM workers WHERE run = ?", (run,)
        ).fetchone()[0]
        if by_workers != lengths.accounted:
            raise ConservationError(
                f"the workers' requests sum to {by_workers}, accounted are {lengths.accounted}"
            )
        return lengths

    # States

    def _enter_state(self, run: str, state: RunState, now: float, reason: str = "") -> None:
        record = build_run_record(self._row(run))
        check_transition(run, record.state, state)
        closes_window = record.active_since is not None and state not in ACTIVE_STATES
        # What a killed stack left open ends with the last report that came.
        end = record.last_report_at if reason == ExpiryReason.STACK_LOST else now
        self._database.execute(
            "UPDATE runs SET state = ?, reason = ?, active_s = ?, active_since = ?, ended_at = ?, queued_at = ?"
            " WHERE run = ?",
            (
                state,
                reason,
                record.measure_active_s(end or 0.0) if closes_window else record.active_s,
                None if closes_window else record.active_since,
                now if state in FINAL_STATES else None,
                now,
                run,
            ),
        )
        self._touched.add(run)

    def _follow_up(self, run: str, now: float) -> None:
        """Enter the state that follows by itself once nothing is out or nothing is left."""
        record = build_run_record(self._row(run))
        if record.state not in ACTIVE_STATES:
            return
        lengths = check_partition(self._slices(run), record.spec.requests)
        if lengths.accounted == record.spec.requests:
            self._enter_state(run, RunState.COMPLETED, now)
        elif lengths.leased == 0 and record.state in _CLOSING_STATES:
            self._enter_state(run, _CLOSING_STATES[record.state], now)

    # Messages, one by one

    def _apply(self, message: Message, now: float) -> Verdict:
        try:
            lease = self._lease_row(message.lease)
        except KeyError:
            return Verdict.UNKNOWN
        if isinstance(message, Claim):
            return self._apply_claim(message, lease, now)
        return self._apply_report(message, lease, now)

    def _apply_claim(self, claim: Claim, lease: sqlite3.Row, now: float) -> Verdict:
        if lease["execution"] is None:
            self._database.execute(
                "UPDATE leases SET execution = ?, worker = ?, boot = ? WHERE id = ?",
                (claim.execution, claim.worker, claim.boot, claim.lease),
            )
            self._open_window(lease["run"], now)
            return Verdict.CLAIMED if lease["state"] == LeaseState.ACTIVE else Verdict.LATE
        if lease["execution"] == claim.execution:
            return Verdict.REPEATED
        self._note_stray(lease, claim.execution, lease["stop"] - lease["start"])
        return Verdict.STRAY

    def _apply_report(self, report: Report, lease: sqlite3.Row, now: float) -> Verdict:
        if find_fault(report, lease["start"], lease["stop"]):
            return Verdict.UNTRUE
        if lease["execution"] not in (None, report.execution):
            self._note_stray(lease, report.execution, report.done - report.start)
            return Verdict.STRAY
        if lease["state"] == LeaseState.REPORTED:
            return Verdict.REPEATED
        if lease["state"] == LeaseState.EXPIRED:
            # What it stands for was added to `resent` when the lease expired.
            return Verdict.LATE
        self._account_for(report, lease, now)
        self._follow_up(lease["run"], now)
        return Verdict.ACCOUNTED

    def _account_for(self, report: Report, lease: sqlite3.Row, now: float) -> None:
        run = lease["run"]
        self._replace_leased(
            run, lease, settle(lease["start"], lease["stop"], report.done, report.unfinished)
        )
        account = self._account(run)
        account.add(report)
        self._database.execute(
            "UPDATE runs SET outcomes = ?, statuses = ?, bytes_received = ?, sum_us = ?, min_us = ?, max_us = ?,"
            " histogram = ?, last_report_at = ?, resent_at_most = resent_at_most + ? WHERE run = ?",
            (*build_account_columns(account), now, len(report.unfinished), run),
        )
        self._database.execute(
            "UPDATE leases SET state = ?, execution = ?, worker = ?, boot = ?, closed_at = ?, covered = ? WHERE id = ?",
            (
                LeaseState.REPORTED,
                report.execution,
                report.worker,
                report.boot,
                now,
                report.covered,
                lease["id"],
            ),
        )
        self._database.execute(
            "INSERT INTO workers (run, worker, requests, cpu_s, peak_rss_mb) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, cpu_s = cpu_s + excluded.cpu_s,"
            " peak_rss_mb = max(peak_rss_mb, excluded.peak_rss_mb)",
            (run, report.worker, report.covered, report.cpu_s, report.peak_rss_mb),
        )
        for flag, figure in judge_report(report).items():
            self._add_flag(run, flag, report.covered, figure)

    def _note_stray(self, lease: sqlite3.Row, execution: str, sent: int) -> None:
        """A second execution of one lease: what it sends is sent again."""
        if sent == 0:
            return
        noted = self._database.execute(
            "INSERT OR IGNORE INTO strays (lease, execution) VALUES (?, ?)", (lease["id"], execution)
        ).rowcount
        if noted:
            self._add_resent(lease["run"], sent)

    def _expire(self, lease: str, reason: ExpiryReason, now: float) -> bool:
        row = self._lease_row(lease)
        if row["state"] != LeaseState.ACTIVE:
            return False
        run, length = row["run"], row["stop"] - row["start"]
        self._replace_leased(run, row, [Slice(row["start"], row["stop"], SliceState.PENDING)])
        self._database.execute(
            "UPDATE leases SET state = ?, reason = ?, closed_at = ? WHERE id = ?",
            (LeaseState.EXPIRED, reason, now, lease),
        )
        if reason != ExpiryReason.NOT_SENT:
            self._add_resent(run, length)
        if reason == ExpiryReason.WORKER_LOST:
            self._add_flag(run, Flag.WORKER_LOST, length, 0)
            self._database.execute(
                "INSERT INTO workers (run, worker, lost) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET lost = 1",
                (run, row["worker"]),
            )
        self._follow_up(run, now)
        return True

    # Rows

    def _replace_leased(self, run: str, lease: sqlite3.Row, pieces: Sequence[Slice]) -> None:
        """Put `pieces` in the place of a leased slice, joined with its neighbours."""
        rows = self._database.execute(
            "SELECT start, stop, state FROM slices WHERE run = ?1 AND start >= coalesce("
            " (SELECT max(start) FROM slices WHERE run = ?1 AND start < ?2), ?2) AND start <= ?3 ORDER BY start",
            (run, lease["start"], lease["stop"]),
        ).fetchall()
        around = [Slice(row["start"], row["stop"], SliceState(row["state"])) for row in rows]
        if Slice(lease["start"], lease["stop"], SliceState.LEASED) not in around:
            self._touched.add(run)
            raise ConservationError(f"lease {lease['id']} is active, its range is not leased")
        before = [piece for piece in around if piece.stop <= lease["start"]]
        after = [piece for piece in around if piece.start >= lease["stop"]]
        self._database.executemany(
            "DELETE FROM slices WHERE run = ? AND start = ?", [(run, p.start) for p in around]
        )
        self._insert_slices(run, build_partition([*before, *pieces, *after]))
        self._touched.add(run)

    def _insert_slices(self, run: str, slices: Iterable[Slice]) -> None:
        self._database.executemany(
            "INSERT INTO slices (run, start, stop, state) VALUES (?, ?, ?, ?)",
            [(run, *piece) for piece in slices],
        )

    def _slices(self, run: str) -> list[Slice]:
        rows = self._database.execute(
            "SELECT start, stop, state FROM slices WHERE run = ? ORDER BY start", (run,)
        )
        return [Slice(start, stop, SliceState(state)) for start, stop, state in rows]

    def _row(self, run: str) -> sqlite3.Row:
        with self._mutex:
            row: sqlite3.Row | None = self._database.execute(
                "SELECT * FROM runs WHERE run = ?", (run,)
            ).fetchone()
        if row is None:
            raise UnknownRunError(run)
        return row

    def _lease_row(self, lease: str) -> sqlite3.Row:
        with self._mutex:
            row: sqlite3.Row | None = self._database.execute(
                "SELECT * FROM leases WHERE id = ?", (lease,)
            ).fetchone()
        if row is None:
            raise KeyError(lease)
        return row

    def _account(self, run: str) -> Account:
        account = self._accounts.get(run)
        if account is None:
            account = self._accounts[run] = build_account(self._row(run))
        return account

    def _fetch_workers(self, run: str) -> list[WorkerSummary]:
        rows = self._database.execute("SELECT * FROM workers WHERE run = ? ORDER BY worker", (run,))
        return [
            WorkerSummary(
                name=row["worker"],
                requests=row["requests"],
                cpu_s=round(row["cpu_s"], 3),
                peak_rss_mb=round(row["peak_rss_mb"], 1),
                lost=bool(row["lost"]),
            )
            for row in rows
        ]

    def _fetch_flags(self, run: str) -> list[tuple[Flag, int, float]]:
        rows = self._database.execute("SELECT * FROM flags WHERE run = ? ORDER BY flag", (run,))
        return [(Flag(row["flag"]), row["requests"], row["worst"]) for row in rows]

    def _open_window(self, run: str, now: float) -> None:
        self._database.execute(
            "UPDATE runs SET active_since = ?1, windows = windows + 1, started_at = coalesce(started_at, ?1)"
            " WHERE run = ?2 AND active_since IS NULL AND state IN ('running', 'pausing', 'cancelling')",
            (now, run),
        )

    def _add_resent(self, run: str, count: int) -> None:
        self._database.execute(
            "UPDATE runs SET resent_at_most = resent_at_most + ? WHERE run = ?", (count, run)
        )

    def _add_flag(self, run: str, flag: Flag, requests: int, figure: float) -> None:
        self._database.execute(
            "INSERT INTO flags (run, flag, requests, worst) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " requests = requests + excluded.requests, worst = max(worst, excluded.worst)",
            (run, flag, requests, figure),
        )

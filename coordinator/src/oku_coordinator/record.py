"""What the ledger keeps, as types: runs and leases in rows, the folded account of a run in memory."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from oku_core import hdr
from oku_core.histogram import Histogram, Latency
from oku_core.interval import ConservationError, Lengths
from oku_core.lease import Report
from oku_core.outcome import OUTCOMES, count_answered
from oku_core.run import RunState
from oku_core.spec import Spec
from oku_core.summary import Flag, WorkerSummary


class LeaseState(StrEnum):
    """What became of a lease."""

    ACTIVE = "active"
    REPORTED = "reported"
    EXPIRED = "expired"


class ExpiryReason(StrEnum):
    """Why a lease was taken back."""

    NOT_SENT = "not_sent"
    """The broker did not take it; nobody has it."""
    NOT_CLAIMED = "not_claimed"
    """No worker began with it in time: its message was lost."""
    WORKER_LOST = "worker_lost"
    """Its worker is dead."""
    REPORT_LOST = "report_lost"
    """Its worker lives and does not have it any more, yet no report came."""
    STACK_LOST = "stack_lost"
    """All processes of the local stack ended with it in hand."""


class Verdict(StrEnum):
    """What the ledger made of a message."""

    CLAIMED = "claimed"
    ACCOUNTED = "accounted"
    REPEATED = "repeated"
    LATE = "late"
    STRAY = "stray"
    UNTRUE = "untrue"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run as the ledger has it."""

    run: str
    name: str
    spec: Spec
    state: RunState
    reason: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    active_s: float
    active_since: float | None
    windows: int
    last_report_at: float | None
    resent_at_most: int
    served: int | None
    accounted: int

    def measure_active_s(self, now: float) -> float:
        """Seconds of activity until `now`, the open window included."""
        return self.active_s + (max(0.0, now - self.active_since) if self.active_since else 0.0)


@dataclass(frozen=True, kw_only=True)
class LeaseRecord:
    """An active lease as the ledger has it; `worker` and `boot` are None until it is claimed."""

    id: str
    run: str
    start: int
    stop: int
    cut_at: float
    worker: str | None
    boot: str | None

    @property
    def length(self) -> int:
        """How many requests."""
        return self.stop - self.start


@dataclass
class Account:
    """What the reports of a run sum to."""

    outcomes: list[int] = field(default_factory=lambda: [0] * len(OUTCOMES))
    statuses: dict[str, int] = field(default_factory=dict)
    bytes_received: int = 0
    histogram: Histogram = field(default_factory=Histogram)

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    def add(self, report: Report) -> None:
        """Fold a report in."""
        for index, count in enumerate(report.outcomes):
            self.outcomes[index] += count
        for status, count in report.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.bytes_received += report.bytes_received
        self.histogram.add(report.latency)

    def copy(self) -> "Account":
        """One that later reports do not change."""
        histogram = Histogram()
        histogram.add(self.histogram.build_latency())
        return Account(list(self.outcomes), dict(self.statuses), self.bytes_received, histogram)

    def check(self, lengths: Lengths) -> None:
        """The second half of the first law: outcomes sum to what is accounted, latencies to what was answered."""
        if self.accounted != lengths.accounted:
            raise ConservationError(f"outcomes sum to {self.accounted}, accounted are {lengths.accounted}")
        answered = count_answered(self.outcomes)
        if not self.histogram.total == answered == sum(self.statuses.values()):
            raise ConservationError(
                f"{answered} answered, {self.histogram.total} latencies, {sum(self.statuses.values())} statuses"
            )


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run with everything that is kept for it, as of one moment; `flags` has requests and the worst figure."""

    record: RunRecord
    lengths: Lengths
    account: Account
    workers: list[WorkerSummary]
    flags: list[tuple[Flag, int, float]]


def build_run_record(row: sqlite3.Row) -> RunRecord:
    """A row of `runs` as a record."""
    values: dict[str, Any] = {
        name: row[name] for name in RunRecord.__dataclass_fields__ if name != "accounted"
    }
    values["accounted"] = sum(json.loads(row["outcomes"]))
    values["spec"] = msgspec.json.decode(row["spec"], type=Spec)
    values["state"] = RunState(row["state"])
    return RunRecord(**values)


def build_lease_record(row: sqlite3.Row) -> LeaseRecord:
    """A row of `leases` as a record."""
    return LeaseRecord(**{name: row[name] for name in LeaseRecord.__dataclass_fields__})


def build_account(row: sqlite3.Row) -> Account:
    """The account of a run as its row has it."""
    histogram = Histogram()
    if row["histogram"]:
        latency = hdr.decode(row["histogram"])
        histogram.add(
            Latency(buckets=latency.buckets, sum_us=row["sum_us"], min_us=row["min_us"], max_us=row["max_us"])
        )
    return Account(
        outcomes=json.loads(row["outcomes"]),
        statuses=json.loads(row["statuses"]),
        bytes_received=row["bytes_received"],
        histogram=histogram,
    )


def build_account_columns(account: Account) -> Sequence[object]:
    """The columns outcomes, statuses, bytes_received, sum_us, min_us, max_us, histogram."""
    histogram = account.histogram
    return (
        json.dumps(account.outcomes),
        json.dumps(account.statuses, sort_keys=True),
        account.bytes_received,
        histogram.sum_us,
        histogram.min_us,
        histogram.max_us,
        hdr.encode(histogram),
    )

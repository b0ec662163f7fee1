"""What the ledger keeps, as types: runs and leases as their rows have them, and what is derived from them."""

import sqlite3
from dataclasses import dataclass

from oku_coordinator.ledger.storage.run_account import Account
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.lease_state import LeaseState
from oku_core.accounting.run_state import ACTIVE_STATES, REST_STATES, RunState
from oku_core.results.event import Event
from oku_core.results.sample import Sample
from oku_core.results.summary import Flag, ProcessSummary, WorkerSummary
from oku_core.spec.spec import Spec


class UnknownRunError(Exception):
    """There is no such run."""

    def __init__(self, run: str) -> None:
        super().__init__(f"there is no run {run}")


class RunInUseError(Exception):
    """A run cannot be deleted now."""

    def __init__(self, run: str, state: RunState) -> None:
        super().__init__(f"run {run} is {state}; it cannot be deleted before it is paused or over")


class BreachError(ConservationError):
    """The account of one run does not balance.

    Args:
        run: its id.
        detail: what does not agree.
    """

    def __init__(self, run: str, detail: str) -> None:
        super().__init__(f"run {run} does not balance: {detail}")
        self.run = run
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run without its spec, which may be large: what lists show.

    Attributes:
        target: scheme, host and port of its first URL; empty for Oku's own delay servers.
        outcomes: what is accounted, in the order of `OUTCOMES`.
        windows: how many windows of activity it has had.
        active_since: when the open window began.
        number: orders runs that were created at the same time.
    """

    run: str
    name: str
    requests: int
    engine: str
    target: str
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
    outcomes: list[int]
    is_broken: bool
    is_published: bool
    number: int

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    @property
    def is_at_rest(self) -> bool:
        """Whether it sends nothing and waits for nothing: it is over or paused."""
        return self.state in REST_STATES

    @property
    def is_active(self) -> bool:
        """Whether its leases may be out."""
        return self.state in ACTIVE_STATES

    @property
    def cursor(self) -> str:
        """Where a list of runs goes on behind this one."""
        return f"{self.created_at!r}_{self.number}"

    def measure_active_s(self, now: float) -> float:
        """Seconds of activity until `now`, the open window included."""
        open_s = 0.0 if self.active_since is None else max(0.0, now - self.active_since)
        return self.active_s + open_s


@dataclass(frozen=True, kw_only=True)
class RunRecord(RunRow):
    """A run with its spec."""

    spec: Spec


@dataclass(frozen=True, kw_only=True)
class LeaseRecord:
    """A lease as the ledger has it.

    `execution`, `worker` and `incarnation` are of the first execution heard of, None until then.
    `reason` says why it has expired.
    """

    id: str
    run: str
    start: int
    stop: int
    state: LeaseState
    reason: str
    cut_at: float
    execution: str | None
    worker: str | None
    incarnation: str | None

    @property
    def length(self) -> int:
        """How many requests."""
        return self.stop - self.start


@dataclass(frozen=True, kw_only=True)
class History:
    """How a run went: samples and events, oldest first."""

    samples: list[Sample]
    events: list[Event]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far a run is at one instant, without reading all of its rows.

    Attributes:
        record: its row and its spec.
        lengths: how much of it is pending, leased and accounted.
        leases: the ids of its active leases.
    """

    record: RunRecord
    lengths: Lengths
    leases: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run with everything that is kept for it, at one instant.

    Attributes:
        record: its row and its spec.
        lengths: how much of it is pending, leased and accounted.
        account: what its reports sum to.
        workers: what each worker did.
        processes: the peak memory of the other processes.
        flags: each with how many requests it concerns and its worst figure.
        breach: why the run does not balance; None when it does.
    """

    record: RunRecord
    lengths: Lengths
    account: Account
    workers: list[WorkerSummary]
    processes: list[ProcessSummary]
    flags: list[tuple[Flag, int, float]]
    breach: str | None


def build_lease_record(row: sqlite3.Row) -> LeaseRecord:
    """A row of `leases` as a record."""
    values = {name: row[name] for name in LeaseRecord.__dataclass_fields__}
    values["state"] = LeaseState(values["state"])
    return LeaseRecord(**values)

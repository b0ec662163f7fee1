"""What the ledger keeps, as types: runs and leases as their rows have them, and what is derived from them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import msgspec

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_core.accounting.account import Account
from oku_core.accounting.failure_reason import ReasonCount
from oku_core.accounting.index_ranges import IndexRanges, Range
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.lease_state import LeaseState
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.outcome import build_no_causes, build_no_counts
from oku_core.accounting.run_state import ACTIVE_STATES, REST_STATES, RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.results.event import Event
from oku_core.results.hook_summary import HookState
from oku_core.results.lease_figures import LeaseFigures
from oku_core.results.sample import Sample
from oku_core.results.series import SeriesRow
from oku_core.results.summary import Flag, ProcessSummary, WorkerSummary
from oku_core.spec.spec import Hook, Spec
from oku_core.thresholds.stretches import StretchValue


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
        load: at which rate, or with how many in flight, and for how long it sends, in words.
        outcomes: what is accounted, in the order of `OUTCOMES`.
        periods: how many periods of activity it has had.
        active_since: when the open period began.
        queued_at: when it last went to the end of the queue.
        queued_s: how long it was in the queue before that.
        watched_s: how many seconds of its workers were watched for how full their windows were.
        underfilled_s: in how many of them a window was not full although indices were untaken.
        count_name: the name under which delay servers count its requests. It is random, and nothing shows it:
            anyone who knew it could send requests that count for the run.
        drops_in_flight: whether its requests in flight get no time to finish once it is stopped.
        last_ended_at: when the last request ended that a checkpoint told of; None before the first.
        number: orders runs that were created at the same time.
    """

    run: str
    name: str
    requests: int
    engine: str
    target: str
    load: str = ""
    state: RunState
    reason: str
    created_at: float
    queued_at: float = 0.0
    queued_s: float = 0.0
    started_at: float | None
    ended_at: float | None
    active_s: float
    active_since: float | None
    periods: int
    last_checkpoint_at: float | None
    last_ended_at: float | None = None
    resent_at_most: int
    count_name: str = field(default="", repr=False)
    served: int | None
    watched_s: float
    underfilled_s: float
    outcomes: list[int]
    is_broken: bool
    is_published: bool
    drops_in_flight: bool = False
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
    def is_given_up(self) -> bool:
        """Whether it was cancelled because it had no worker: what it has done is no test of anything."""
        return self.state == RunState.CANCELLED and self.reason.startswith(NO_WORKER)

    @property
    def cursor(self) -> str:
        """Where a list of runs goes on behind this one."""
        return f"{self.created_at!r}_{self.number}"

    def measure_queued_s(self, now: float) -> float:
        """Seconds until `now` in which it was pending, over all its turns."""
        waits_s = max(0.0, now - self.queued_at) if self.state == RunState.PENDING else 0.0
        return self.queued_s + waits_s

    def measure_active_s(self, now: float) -> float:
        """Seconds of activity until `now`, the open period included."""
        open_s = 0.0 if self.active_since is None else max(0.0, now - self.active_since)
        return self.active_s + open_s


NO_WORKER = "no worker for "
"""So begins the reason of a run that is cancelled because it has had no worker for too long."""


@dataclass(frozen=True, kw_only=True)
class RunRecord(RunRow):
    """A run with its spec."""

    spec: Spec

    def measure_active_s(self, now: float) -> float:
        """Seconds of activity until `now`; a closed run only waits for answers once its time is over."""
        active_s, length_s = super().measure_active_s(now), self.spec.length_s
        return active_s if length_s is None or self.spec.is_open else min(active_s, float(length_s))

    @property
    def drain_s(self) -> float:
        """How many seconds its requests in flight may take to finish once it is stopped."""
        return 0.0 if self.drops_in_flight else self.spec.drain_s


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A lease as the ledger has it; all positions are those of its ranges.

    Attributes:
        id: its id.
        run: the run that it is of.
        ranges: its ranges.
        worker: the name of its worker; empty for some leases of old ledgers.
        incarnation: the process of that worker that it was given to.
        state: what became of it.
        reason: why it has expired; empty otherwise.
        cut_at: when it was dealt.
        limit: the first position that the worker must not take; it never falls, and only counts up to `end`.
        end: the first position that is not leased, or is not any more.
        done: the first position that was not taken, as committed.
        in_flight: the positions below `done` that had no outcome, packed where there are any.
        sequence: that of its newest checkpoint; 0 if none came yet.
        outcomes: the counts of outcomes of what is covered.
        figures: those of its newest checkpoint.
        wave: of an open run, the first coordinate of the wave that it lies in; None in closed runs.
        lane: the lane of that wave.
    """

    id: str
    run: str
    ranges: IndexRanges
    worker: str
    incarnation: str
    state: LeaseState = LeaseState.ACTIVE
    reason: str = ""
    cut_at: float
    limit: int
    end: int
    done: int = 0
    in_flight: Sequence[int] = ()
    sequence: int = 0
    outcomes: list[int] = msgspec.field(default_factory=build_no_counts)
    figures: LeaseFigures = LeaseFigures()
    wave: int | None = None
    lane: int = 0

    @property
    def length(self) -> int:
        """How many requests it was dealt with."""
        return self.ranges.length

    @property
    def covered(self) -> int:
        """How many requests have an outcome."""
        return self.done - len(self.in_flight)

    @property
    def bound(self) -> int:
        """The first position that the worker must not take, whatever it has heard."""
        return min(self.limit, self.end)

    @property
    def at_risk(self) -> int:
        """How many requests may have been sent although no outcome of theirs is committed."""
        return self.sent_in_flight + self.bound - self.done

    @property
    def sent_in_flight(self) -> int:
        """How many of those in flight may have been sent: all but those that were given back untouched."""
        return len(self.in_flight) - len(self.figures.untouched)

    def list_at_risk(self) -> list[Range]:
        """The ranges of these requests; those in flight come first."""
        untouched = set(self.figures.untouched)
        sent = [position for position in self.in_flight if position not in untouched]
        in_flight = [(index, index + 1) for index in self.ranges.list_indices(sent)]
        return [*in_flight, *self.ranges.cut(self.done, self.bound)]

    @property
    def start(self) -> int:
        """Its first index."""
        return self.ranges.ranges[0][0]

    @property
    def stop(self) -> int:
        """The index behind its last one."""
        return self.ranges.ranges[-1][1]


class LeaseOrder(NamedTuple):
    """A lease that is to be dealt.

    Attributes:
        worker: the name of the worker.
        incarnation: its process.
        size: gives the size of the lease for the number of requests that are pending; 0 for none.
        limit: gives the first limit for the size that the lease has got.
    """

    worker: str
    incarnation: str
    size: Callable[[int], int]
    limit: Callable[[int], int]


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What the ledger made of a batch of checkpoints, and what its worker is to hear of it.

    Attributes:
        batch: the batch.
        verdicts: on each of its checkpoints.
        confirmed: for each lease, the highest sequence number that is dealt with.
        limits: the limits of open leases of this process that it may not have heard of.
        ends: where its leases should end, as far as it says otherwise.
    """

    batch: CheckpointBatch
    verdicts: list[MessageVerdict] = field(default_factory=list)
    confirmed: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HookRecord:
    """What became of a hook of a run; what it returned is kept beside it.

    Attributes:
        hook: which one.
        state: what became of it.
        attempt: the number of the newest call; rises as long as the run exists.
        tries: how many calls there were since the run began, or was resumed after a failure.
        worker: the name of the worker that has the newest call.
        incarnation: the process of that worker.
        since: when that call was given to it, or since when a teardown is owed.
        ended_at: when the newest call ended.
        error: why it failed, or was lost.
        traceback: where it failed.
        end_state: of a teardown, the state that the run enters after it.
        end_reason: why.
    """

    hook: Hook
    state: HookState
    attempt: int
    tries: int
    worker: str
    incarnation: str
    since: float
    ended_at: float | None
    error: str
    traceback: str
    end_state: RunState | None
    end_reason: str

    @property
    def is_settled(self) -> bool:
        """Whether it is under way, or is not to be called any more."""
        return self.state not in (HookState.OWED, HookState.LOST)


class KeyRecord(NamedTuple):
    """What is kept of a key with which a run was submitted.

    Attributes:
        key: the key.
        digest: of the spec that was submitted with it.
        run: the run.
        deleted_at: when the run was deleted; None while it is there.
        summary: of a deleted run, how it stood, as JSON.
    """

    key: str
    digest: str
    run: str
    deleted_at: float | None = None
    summary: bytes | None = None


class RunEnd(NamedTuple):
    """What is kept of a deleted run that was submitted with a key.

    Attributes:
        deleted_at: when it was deleted.
        summary: how it stood then, as JSON.
    """

    deleted_at: float
    summary: bytes


class RetryRecord(NamedTuple):
    """What a run completes that sends what failed in another one.

    Attributes:
        retried: the run whose failed requests it sends.
        origin: the first run of them all.
        requests: how many that one has.
        ok: how many of them were ok before this run.
        unlisted: how many had failed that are not sent, as they were not listed.
    """

    retried: str
    origin: str
    requests: int
    ok: int
    unlisted: int


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
        lengths: how much of it is in each state.
        leases: its open leases by id, each with the committed counts of its outcomes.
        period: the newest period of its schedule; None without one.
        not_sent: why requests were not sent, in the order of `NOT_SENT_CAUSES`.
        reasons: why requests failed, each with the name of its part.
    """

    record: RunRecord
    lengths: Lengths
    leases: Mapping[str, list[int]]
    period: PeriodRecord | None = None
    not_sent: Sequence[int] = field(default_factory=build_no_causes)
    reasons: Sequence[tuple[str, ReasonCount]] = ()


class ThresholdRecord(NamedTuple):
    """What is kept of a threshold beside the account.

    Attributes:
        lost_at: when it was seen to be lost for certain; None if it is not.
        worst: of one over some seconds in a row, the worst of these; None if none was judged.
        loss: the first of these in which it did not hold; None if there is none.
        longest_s: for how long the longest row of seconds was that it could look at.
    """

    lost_at: float | None = None
    worst: float | None = None
    loss: StretchValue | None = None
    longest_s: float = 0.0


class StretchBasis(NamedTuple):
    """What thresholds over some seconds in a row are judged by while a run goes on.

    Attributes:
        series: its seconds, from some time on.
        periods: its periods of activity, the oldest first; none if it has no clock.
        leases: its open leases.
        pending: how many requests are in no lease, and were not sent.
    """

    series: Sequence[SeriesRow]
    periods: Sequence[PeriodRecord]
    leases: Sequence[LeaseRecord]
    pending: int

    @property
    def untaken(self) -> int:
        """How many requests were left to be sent when the newest checkpoints were made."""
        return self.pending + sum(lease.end - lease.done for lease in self.leases)


@dataclass(frozen=True, kw_only=True)
class ThresholdBasis:
    """What the thresholds of a run are judged by.

    Attributes:
        record: its row and its spec.
        accounts: what its requests sum to, by phase and name.
        flags: each with how many requests it concerns and its worst figure.
        thresholds: what is kept of them, by their places in the spec.
        course: how the run went by the clock; None while it goes on, or if no threshold asks for it.
    """

    record: RunRecord
    accounts: RunAccount
    flags: Sequence[tuple[Flag, int, float]]
    thresholds: Mapping[int, ThresholdRecord]
    course: Course | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run with everything that is kept for it, at one instant.

    Attributes:
        record: its row and its spec.
        lengths: how much of it is in each state.
        accounts: what its requests sum to, by phase and name.
        workers: what each worker did.
        processes: the peak memory of the other processes.
        flags: each with how many requests it concerns and its worst figure.
        breach: why the run does not balance; None when it does.
        course: how it went by the clock; None without a rate.
        thresholds: what is kept of its thresholds, by their places in the spec.
        retry: what it sends again; None if it is no retry.
        tracebacks: where exceptions of user code came from, by their reasons.
        hooks: what became of those of its scenario.
        closed_course: how a run without a rate that is at rest went by the clock; None unless thresholds over
            some seconds are judged by it.
    """

    record: RunRecord
    lengths: Lengths
    accounts: RunAccount
    workers: list[WorkerSummary]
    processes: list[ProcessSummary]
    flags: list[tuple[Flag, int, float]]
    breach: str | None
    course: Course | None = None
    thresholds: Mapping[int, ThresholdRecord] = field(default_factory=dict)
    retry: RetryRecord | None = None
    tracebacks: Mapping[str, str] = field(default_factory=dict)
    hooks: Sequence[HookRecord] = ()
    closed_course: Course | None = None

    @cached_property
    def account(self) -> Account:
        """What all its requests sum to."""
        return self.accounts.parts.fetch_whole()


UNREADABLE = (ValueError, OverflowError, msgspec.MsgspecError)
"""What is raised for columns that cannot be read."""


@contextmanager
def breaching(run: str) -> Iterator[None]:
    """Raise whatever does not balance, or cannot be read, as the breach of a run."""
    try:
        yield
    except BreachError:
        raise
    except (ConservationError, *UNREADABLE) as error:
        raise BreachError(run, str(error)) from error

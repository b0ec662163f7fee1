"""Rows of the ledger as types: runs, hooks, keys, retries and thresholds; and the errors about them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from oku_core.accounting.interval import ConservationError
from oku_core.accounting.run_state import ACTIVE_STATES, REST_STATES, RunState
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.spec import Hook, Spec
from oku_core.summary.summary import HookState
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
        detail: the contradiction.
    """

    def __init__(self, run: str, detail: str) -> None:
        super().__init__(f"run {run} does not balance: {detail}")
        self.run = run
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run without its spec, which may be large: what lists show.

    Attributes:
        engine: the engine that was chosen for it, and why; the ledger has both in one text.
        target: in words, as `describe_target` has it.
        load: its rate or number of requests in flight, and its duration, in words.
        outcomes: the accounted requests, in the order of `OUTCOMES`.
        periods: how many periods of activity it has had.
        active_since: when the open period began.
        queued_at: when it last went to the end of the queue.
        queued_s: how long it was in the queue before that.
        watched_s: the worker seconds in which the fill of the window was observed.
        underfilled_s: how many of them had an underfilled window despite untaken indices.
        count_name: the name under which delay servers count its requests. It is random and secret: anyone who
            knew it could send requests that count for the run.
        drops_in_flight: whether its requests in flight get no time to finish once it is stopped.
        last_ended_at: when the last reported request ended; None before the first.
        number: orders runs that were created at the same time.
    """

    run: str
    name: str
    requests: int
    engine: EngineChoice
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
        """The number of its requests with an outcome."""
        return sum(self.outcomes)

    @property
    def is_at_rest(self) -> bool:
        """Whether it sends nothing and is not queued: it is over or paused."""
        return self.state in REST_STATES

    @property
    def is_active(self) -> bool:
        """Whether it may have open leases."""
        return self.state in ACTIVE_STATES

    @property
    def is_given_up(self) -> bool:
        """Whether it was cancelled for lack of workers: its results are no test of anything."""
        return self.state == RunState.CANCELLED and self.reason.startswith(NO_WORKER)

    @property
    def cursor(self) -> str:
        """Its cursor in lists of runs, for the page after it."""
        return f"{self.created_at!r}_{self.number}"

    def measure_queued_s(self, now: float) -> float:
        """The seconds until `now` in which it was pending, over all its turns."""
        waits_s = max(0.0, now - self.queued_at) if self.state == RunState.PENDING else 0.0
        return self.queued_s + waits_s

    def measure_active_s(self, now: float) -> float:
        """The seconds of activity until `now`, the open period included."""
        open_s = 0.0 if self.active_since is None else max(0.0, now - self.active_since)
        return self.active_s + open_s


NO_WORKER = "no worker for "
"""The start of the reason of a run that is cancelled because it had no worker for too long."""


@dataclass(frozen=True, kw_only=True)
class RunRecord(RunRow):
    """A run with its spec."""

    spec: Spec

    def measure_active_s(self, now: float) -> float:
        """The seconds of activity until `now`; a closed run past its time limit only waits for responses."""
        active_s, length_s = super().measure_active_s(now), self.spec.length_s
        return active_s if length_s is None or self.spec.is_open else min(active_s, float(length_s))

    @property
    def drain_s(self) -> float:
        """How many seconds its requests in flight may take to finish after a stop."""
        return 0.0 if self.drops_in_flight else self.spec.drain_s


@dataclass(frozen=True, kw_only=True)
class HookRecord:
    """The state of a hook of a run; its return value is stored separately.

    Attributes:
        hook: the hook.
        state: its state.
        attempt: the number of the newest call; rises as long as the run exists.
        tries: the number of calls since the run started, or was resumed after a failure.
        worker: the name of the worker that has the newest call.
        incarnation: the process of that worker.
        since: when that call was assigned, or since when a teardown is due.
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
        """Whether it is running, or will not be called any more."""
        return self.state not in (HookState.OWED, HookState.LOST)


class KeyRecord(NamedTuple):
    """The record of an idempotency key.

    Attributes:
        key: the key.
        digest: the digest of the spec that was submitted with it.
        run: the run.
        deleted_at: when the run was deleted; None while it exists.
        summary: the last summary of a deleted run, as JSON.
    """

    key: str
    digest: str
    run: str
    deleted_at: float | None = None
    summary: bytes | None = None


class RunEnd(NamedTuple):
    """The record of a deleted run that was submitted with a key.

    Attributes:
        deleted_at: when it was deleted.
        summary: its last summary, as JSON.
    """

    deleted_at: float
    summary: bytes


class RetryRecord(NamedTuple):
    """The totals of a run and its retries.

    Attributes:
        retried: the run whose failed requests it sends.
        origin: the first run of them all.
        requests: the number of its requests.
        ok: how many of them were ok before this run.
        unlisted: how many had failed and are not sent, because they were not listed.
        unjudged: how many had failed and are not sent, because it is not known whether they failed for one of
            the reasons that were asked for.
    """

    retried: str
    origin: str
    requests: int
    ok: int
    unlisted: int
    unjudged: int = 0


class ThresholdRecord(NamedTuple):
    """The record of a threshold beside the account.

    Attributes:
        lost_at: when it was certainly lost; None if it is not.
        worst: over consecutive seconds, the worst value; None if none was judged.
        loss: the first value that did not hold; None if there is none.
        longest_s: the length of the longest row of seconds that could be judged.
    """

    lost_at: float | None = None
    worst: float | None = None
    loss: StretchValue | None = None
    longest_s: float = 0.0


UNREADABLE = (ValueError, OverflowError, msgspec.MsgspecError)
"""The errors of unreadable columns."""


@contextmanager
def breaching(run: str) -> Iterator[None]:
    """Raise a contradiction or an unreadable column as the breach of a run."""
    try:
        yield
    except BreachError:
        raise
    except (ConservationError, *UNREADABLE) as error:
        raise BreachError(run, str(error)) from error

"""The summary of a run: the account and the statistics in the form that people, scripts and dashboards read.

`docs/summary.schema.json` is the JSON Schema of `Summary`, generated from here.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from oku_core.accounting.outcome import count_sent
from oku_core.accounting.run_state import RunState
from oku_core.messaging.printed import PrintedSummary
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.load import WARM_UP
from oku_core.spec.spec import Engine, Hook
from oku_core.summary.latency_summary import QuantileIntervals
from oku_core.summary.plan_check import PlanSummary
from oku_core.summary.request_summary import (
    FailureSummary,
    InnerSummary,
    PhaseSummary,
    RequestSummary,
    TargetSummary,
)
from oku_core.summary.validity import Flag, Validity
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

LONG_WAIT_S = 10.0
"""The shortest time in the queue that readers are shown; any run on one machine waits for less."""


class Unit(StrEnum):
    """What an index of a run is."""

    REQUEST = "request"
    """One request."""
    ITERATION = "iteration"
    """One iteration of user code, which makes any number of requests."""


class HookState(StrEnum):
    """The state of a hook of a run."""

    OWED = "owed"
    """It is to be called."""
    BEGUN = "begun"
    """A worker calls it."""
    LOST = "lost"
    """The worker, or its process of user code, was lost while it did; it is to be called again."""
    DONE = "done"
    """It has returned, and that counts."""
    FAILED = "failed"
    """It has raised, or took too long, or was lost too often."""
    GIVEN_UP = "given_up"
    """Its wait was abandoned."""


class HookSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A hook of a run.

    `calls` is how often it was begun: more than once if workers were lost in it. `took_s` is how long the
    call took that counts, None before its end; `error` and `traceback` explain its failure or loss.
    """

    hook: Hook
    state: HookState
    calls: int
    worker: str
    took_s: float | None = None
    error: str = ""
    traceback: str = ""


class WorkerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker did: requests accounted, processor time, memory; `lost` if it died during the run."""

    name: str
    requests: int
    cpu_s: float
    peak_rss_mb: float
    lost: bool


class ProcessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The peak resident memory of a process other than a worker, in MB of 10**6 bytes.

    For the broker, it is the most that it has allocated.
    """

    name: str
    peak_mb: float


class ServersSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests of the run Oku's own delay servers received."""

    served: int


class CompletesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The original of a run that sends its failed requests again.

    `run` is the first one of them all, with its `requests` and how many of them were `ok` before this run;
    `ok_with_retries` is how many are now. `retried` is the run whose failed requests these are, and
    `unlisted` how many of its requests had failed that are not among them, as the ledger did not list them.
    `unjudged` is how many are left out of a retry by reason because their reasons are not kept.
    """

    run: str
    retried: str
    requests: int
    ok: int
    ok_with_retries: int
    unlisted: int = 0
    unjudged: int = 0


class Summary(RequestSummary, frozen=True, kw_only=True):
    """A run as it stands.

    `unit` is the counted thing: requests, or iterations of user code; `inner_requests` are the requests that
    iterations have made, by name. `target` is the target in words, without secrets: a URL, or the names of
    targets. `load` describes the rate, or the number in flight, and the duration. `engine_reason` is why a
    faster engine was not chosen, as in `needs a proxy`. `outcomes`, `not_sent`, `statuses` and
    `bytes_received` are of the whole run, the rates, the distributions and their histograms are of all
    phases but the warm-up. `throughput_rps` is how many requests were sent, and have ended, per
    second of sending, `completed_rps` how many were answered in that time, and `planned_rps` the mean rate
    that is planned for it so far; None without a rate. `phases` is empty if the run has only one, without a
    name; `targets`, in the order of the spec, if it names none. `failures` has the reasons of requests that
    are not ok, the most frequent first. `completes` is None unless the run retries the failed requests of
    another one. `hooks` has the states of `setup` and `teardown`; a failed teardown changes neither verdict
    nor account. `plan` compares the arrivals of a run with a rate with its schedule, and is None without a
    rate. `queued_s` is how long the run was pending. `watched_s` is how many seconds of all workers were
    watched for how full their windows were, and `underfilled_s` in how many of them less than 97 % of a
    window was in flight. `verdict` is the result of the run: `failed` if a threshold has, or if it is over
    and nothing was ok; None if it has no thresholds and something was ok, or if it was given up for lack of
    workers. `thresholds` has each of them in its order. `latency_interval_ms` and `response_time_interval_ms`
    are filled in by the command, for a run at rest that is long enough. `servers` is None if the target is
    not Oku's own; `reason` is why the run failed or ended by itself; `notices` explain waits and problems,
    and are empty for a run at rest. `printed` is what user code has printed, as long as the coordinator
    that followed the run knows it.
    """

    run: str
    name: str
    state: RunState
    reason: str = ""
    notices: list[str] = msgspec.field(default_factory=list)
    printed: PrintedSummary | None = None
    engine: Engine
    engine_reason: str = ""
    unit: Unit = Unit.REQUEST
    target: str = ""
    load: str = ""
    requests: int
    accounted: int
    resent_at_most: int
    started_at: str | None
    ended_at: str | None
    active_s: float
    queued_s: float = 0.0
    watched_s: float = 0.0
    underfilled_s: float = 0.0
    throughput_rps: float
    completed_rps: float = 0.0
    planned_rps: float | None = None
    latency_interval_ms: QuantileIntervals | None = None
    response_time_interval_ms: QuantileIntervals | None = None
    histogram: str
    response_time_histogram: str = ""
    lateness_histogram: str = ""
    phases: list[PhaseSummary] = msgspec.field(default_factory=list)
    targets: list[TargetSummary] = msgspec.field(default_factory=list)
    inner_requests: list[InnerSummary] = msgspec.field(default_factory=list)
    hooks: list[HookSummary] = msgspec.field(default_factory=list)
    plan: PlanSummary | None = None
    verdict: ThresholdVerdict | None = None
    thresholds: list[ThresholdSummary] = msgspec.field(default_factory=list)
    failures: list[FailureSummary] = msgspec.field(default_factory=list)
    completes: CompletesSummary | None = None
    workers: list[WorkerSummary]
    processes: list[ProcessSummary] = msgspec.field(default_factory=list)
    servers: ServersSummary | None
    validity: list[Validity]

    @property
    def engine_choice(self) -> EngineChoice:
        """Its engine with the reason."""
        return EngineChoice(self.engine, self.engine_reason)

    @property
    def measured_s(self) -> float:
        """How many seconds of activity `throughput_rps` covers: those after the warm-up."""
        warm_up_s = next((phase.end_s for phase in self.phases if phase.name == WARM_UP), None) or 0.0
        return max(0.0, self.active_s - warm_up_s)


def count_bytes_received(summary: Summary) -> int:
    """The bytes of all answers of a run, those within iterations included."""
    return summary.bytes_received + sum(inner.bytes_received for inner in summary.inner_requests)


def find_imbalance(
    *,
    state: RunState,
    requests: int,
    accounted: int,
    outcomes: Sequence[int],
    resent_at_most: int,
    served: int | None,
) -> str | None:
    """Why the account of a run does not balance, or None.

    The outcomes sum to the accounted requests; a completed run is accounted in full; each `ok` request was
    served, and the servers saw no more requests than were accounted as sent, or may have been sent again.
    """
    if sum(outcomes) != accounted:
        return f"the outcomes sum to {sum(outcomes)}, accounted are {accounted}"
    if state == RunState.COMPLETED and accounted != requests:
        return f"completed with {accounted} of {requests} accounted"
    if served is None:
        return None
    if served < outcomes[0]:
        return f"{outcomes[0]} are ok, the servers counted {served}"
    if served > (sent := count_sent(outcomes)) + resent_at_most:
        return f"the servers counted {served}, sent are {sent} and resent at most {resent_at_most}"
    return None


def is_unbalanced(summary: Summary) -> bool:
    """Whether the account of a run does not balance."""
    return any(validity.flag == Flag.UNBALANCED for validity in summary.validity)

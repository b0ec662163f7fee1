"""The summary of a run: the account and the statistics in the form that people, scripts and dashboards read.

`docs/summary.schema.json` is the JSON Schema of `Summary`, generated from here.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import Outcome, count_sent
from oku_core.accounting.run_state import RunState
from oku_core.results.hook_summary import HookSummary
from oku_core.results.timing_summary import LatencySummary, QuantileIntervals, TimingSummary
from oku_core.spec.load import WARM_UP
from oku_core.spec.spec import Engine
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

LONG_WAIT_S = 10.0
"""A time in the queue that readers are told of; a shorter one is that of every run on one machine."""


class Flag(StrEnum):
    """Why a number of a summary may be misleading."""

    WORKER_SATURATED = "worker_saturated"
    """A worker was short of processor time: latencies include its own queueing."""
    LOOP_LAG = "loop_lag"
    """A worker's event loop was late: latencies include its stalls."""
    WORKERS_MISSING = "workers_missing"
    """The run began with fewer workers than it had asked for."""
    UNDERFILLED = "underfilled"
    """Fewer requests were in flight than were asked for, although some were left and the target answered."""
    WORKER_LOST = "worker_lost"
    """A worker died; its leases were given to other workers."""
    CLOCK_SET = "clock_set"
    """The clock of a machine was set: durations are right, times of day before and after do not agree."""
    CLOCK_SKEW = "clock_skew"
    """A worker did not know the coordinator's clock well: its arrivals may be early or late by the bound."""
    OFF_PLAN = "off_plan"
    """Seconds of a run with a rate had more or fewer arrivals than its schedule has."""
    RESENT = "resent"
    """Requests may have been sent more than once."""
    INTERRUPTED = "interrupted"
    """The run was paused or interrupted: it was measured in several periods."""
    UNANSWERED = "unanswered"
    """Requests without a complete response are in no latency figure."""
    SERVED_UNKNOWN = "served_unknown"
    """What the delay servers counted is unknown, so the account is not compared with it."""
    UNBALANCED = "unbalanced"
    """The account does not agree with what the delay servers counted."""


class OffPlanCause(StrEnum):
    """Why arrivals missed the plan of a run with a rate."""

    TARGET = "target"
    """The target was slower than what may be in flight holds."""
    CAP = "cap"
    """The concurrency that the user has set is too small for the rate, as the target usually answers."""
    WORKER = "worker"
    """Workers sent late, or died."""
    BROKER = "broker"
    """No worker had the requests in time: the broker, the coordinator or all workers were away."""


class Unit(StrEnum):
    """What an index of a run is."""

    REQUEST = "request"
    """One request."""
    ITERATION = "iteration"
    """One iteration of user code, which makes any number of requests."""


class Validity(msgspec.Struct, frozen=True, kw_only=True):
    """A flag, what it means here, and how many requests it concerns.

    `share` is their share of the accounted requests; None if they are not among these.
    """

    flag: Flag
    detail: str
    requests: int
    share: float | None = None


class OutcomeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """All outcomes; of a run, they sum to `accounted`."""

    ok: int
    unexpected_status: int
    timeout: int
    connect_error: int
    disconnected: int
    protocol_error: int
    not_sent: int = 0
    lost: int = 0
    failed_check: int = 0
    exception: int = 0


class NotSentCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Why requests were not sent; they sum to the outcome `not_sent`."""

    in_flight_cap: int = 0
    late: int = 0
    not_dealt: int = 0


class AnswerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What some requests came to: their outcomes, statuses and latencies."""

    outcomes: OutcomeCounts
    statuses: dict[str, int]
    bytes_received: int
    latency_ms: LatencySummary

    def find_latency(self, time: Time) -> LatencySummary:
        """The figures of one of `LIVE_TIMES`."""
        figures: LatencySummary = getattr(self, f"{time}_ms")
        return figures


class RequestSummary(AnswerSummary, frozen=True, kw_only=True):
    """What requests of the account came to: those of a run, a phase or a target.

    `latency_ms` is from sending to the end; in a run with a rate, `response_time_ms` is from when a request
    was due to its end, and `lateness_ms` from when it was due to sending; `timing_ms` says how the time is
    split.
    """

    not_sent: NotSentCounts = NotSentCounts()
    response_time_ms: LatencySummary = LatencySummary()
    lateness_ms: LatencySummary = LatencySummary()
    timing_ms: TimingSummary = TimingSummary()


class TargetSummary(RequestSummary, frozen=True, kw_only=True):
    """What went to one target of a run that has several, in the whole run or in one phase.

    `requests` is how many are accounted so far; the outcomes sum to it. `rate_rps` is of those that were sent
    and have ended. Of a target of the whole run, the rate and the distributions leave the warm-up out, as
    those of the run do.
    """

    name: str
    weight: int
    requests: int
    rate_rps: float


class InnerSummary(AnswerSummary, frozen=True, kw_only=True):
    """The requests of one name that user code has made within iterations, in the whole run.

    They stand beside the account: an iteration makes any number of them, and what is sent again is counted
    again. `requests` is how many there were, and the outcomes sum to it; `statuses` leaves out what has none.
    The rate and the latencies leave the warm-up out. `failures` says why they are not ok.
    """

    name: str
    requests: int
    rate_rps: float
    failures: list["FailureSummary"] = []


class PhaseSummary(RequestSummary, frozen=True, kw_only=True):
    """The part of a run that is one stage, the warm-up, or what follows it.

    `begin_s` and `end_s` are seconds of the run's activity; `end_s` is None if only the last request ends it.
    A request belongs to the phase in which it was due, or in a closed run taken. `due` is how many are due in
    it in all, None without a rate; `requests` how many of them are accounted so far, to which the outcomes
    sum, and `completed` how many were answered in full. `sent_rps` and `completed_rps` are what was sent and
    what was answered in its time so far, per second, and `planned_rps` the mean rate that is planned for that
    time; None without a rate. `targets` is empty if the targets of the run have no names.
    """

    name: str
    begin_s: float
    end_s: float | None
    due: int | None = None
    requests: int
    completed: int
    planned_rps: float | None = None
    sent_rps: float
    completed_rps: float
    targets: list[TargetSummary] = []


class PlanSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How the arrivals of a run with a rate kept to its schedule, second by second.

    `seconds` is how many were compared: those that lie in a period of activity as a whole, as far as all
    workers have told of them, and the one in which a run has ended of which all is accounted. In
    `off_seconds` of them, what was sent is more than 1 %, and more than one request, away from what was due.
    `missed` is how many requests that were due in such seconds were not sent in them, and `causes` says why,
    the weightiest first.
    """

    seconds: int
    off_seconds: int
    off_share: float
    missed: int
    causes: list[OffPlanCause]


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


class FailureSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests of a target failed for one reason.

    `first_index` and `last_index` are the lowest and highest of them, None if they are not known; `sample` is
    the request of the first one, and `traceback` is where the first exception of user code came from. By
    target and outcome all `requests` sum to the outcome, as long as there are at most 100 reasons.
    """

    target: str = ""
    outcome: Outcome
    reason: str
    requests: int
    first_index: int | None = None
    last_index: int | None = None
    sample: str = ""
    traceback: str = ""


class CompletesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run completes that sends the failed requests of another one again.

    `run` is the first one of them all, with so many `requests` and so many of them `ok` before this run;
    `ok_with_retries` is how many are now. `retried` is the run whose failed requests these are, and
    `unlisted` how many of its requests had failed that are not among them, as the ledger did not list them.
    """

    run: str
    retried: str
    requests: int
    ok: int
    ok_with_retries: int
    unlisted: int = 0


class Summary(RequestSummary, frozen=True, kw_only=True):
    """A run as it stands.

    `unit` is what is counted: requests, or iterations of user code; `inner_requests` are the requests that
    these have made, by name. `target` says in words what is asked, without secrets: a URL, or the names of
    targets. `load` says in words at which rate, or with how many in flight, and for how long requests are
    sent.
    `outcomes`, `not_sent`, `statuses` and `bytes_received` are of the whole run, the rates, the distributions
    and their histograms are of all phases but the warm-up. `throughput_rps` is how many requests were sent,
    and have ended, per second of sending, `completed_rps` how many were answered in that time, and
    `planned_rps` the mean rate that is planned for it so far; None without a rate. `phases` is
    empty if the run has only
    one, without a name; `targets`, in the order of the spec, if it names none.
    `failures` says why requests are not ok, the most frequent reasons first. `completes` is None unless the
    run sends what failed in another one.
    `hooks` says what became of `setup` and `teardown`; a failed teardown changes neither verdict nor account.
    `plan` says how the arrivals of a run with a rate kept to its schedule, and is None without a rate.
    `queued_s` is how long the run was pending.
    `watched_s` is how many seconds of all workers were watched for how full their windows were, and
    `underfilled_s` in how many of them less than 97 % of a window was in flight.
    `verdict` says whether the run has passed: `failed` if a threshold has, or if it is over and nothing was
    ok; None if it has no thresholds and something was ok, or if it was given up for lack of workers.
    `thresholds` has each of them in its order.
    `latency_interval_ms` and `response_time_interval_ms` are filled in by the command, for a run at rest that
    is long enough.
    `servers` is None if the target is not Oku's own; `reason` says why the run failed or ended
    by itself; `notices` say what it waits for and what goes wrong, and are empty for a run at rest.
    """

    run: str
    name: str
    state: RunState
    reason: str = ""
    notices: list[str] = []
    engine: Engine
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
    phases: list[PhaseSummary] = []
    targets: list[TargetSummary] = []
    inner_requests: list[InnerSummary] = []
    hooks: list[HookSummary] = []
    plan: PlanSummary | None = None
    verdict: ThresholdVerdict | None = None
    thresholds: list[ThresholdSummary] = []
    failures: list[FailureSummary] = []
    completes: CompletesSummary | None = None
    workers: list[WorkerSummary]
    processes: list[ProcessSummary] = []
    servers: ServersSummary | None
    validity: list[Validity]

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

    The outcomes sum to what is accounted; a completed run is accounted in full; what is `ok` was served, and
    the servers saw no more than what is accounted and was sent, or may have been sent again.
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

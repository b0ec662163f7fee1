"""What requests came to, as people, scripts and dashboards read it: of a phase, a target, or a name."""

import msgspec

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import Outcome
from oku_core.summary.latency_summary import LatencySummary, TimingSummary


class OutcomeCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class NotSentCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why requests were not sent; they sum to the outcome `not_sent`."""

    in_flight_cap: int = 0
    late: int = 0
    not_dealt: int = 0


class AnswerSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What some requests came to: their outcomes, statuses and latencies."""

    outcomes: OutcomeCounts
    statuses: dict[str, int]
    bytes_received: int
    latency_ms: LatencySummary

    def find_latency(self, time: Time) -> LatencySummary:
        """The figures of one of `LIVE_TIMES`."""
        figures: LatencySummary = getattr(self, f"{time}_ms")
        return figures


class RequestSummary(AnswerSummary, frozen=True, kw_only=True, gc=False):
    """The results of the accounted requests of a run, a phase or a target.

    `latency_ms` is from sending to the end; in a run with a rate, `response_time_ms` is from when a request
    was due to its end, and `lateness_ms` from when it was due to sending; `timing_ms` splits the time into
    its steps.
    """

    not_sent: NotSentCounts
    response_time_ms: LatencySummary
    lateness_ms: LatencySummary
    timing_ms: TimingSummary = TimingSummary()


class TargetSummary(RequestSummary, frozen=True, kw_only=True, gc=False):
    """The requests to one target of a run that has several, in the whole run or in one phase.

    `requests` is how many are accounted so far; the outcomes sum to it. `rate_rps` counts requests that were
    sent and have ended. The rate and the distributions of a target of the whole run leave the warm-up out, as
    for the run itself.
    """

    name: str
    weight: int
    requests: int
    rate_rps: float


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


class InnerSummary(AnswerSummary, frozen=True, kw_only=True):
    """The requests of one name that user code has made within iterations, in the whole run.

    They stand beside the account: an iteration makes any number of them, and resent ones are counted
    again. The outcomes sum to `requests`; `statuses` leaves out requests without one.
    The rate and the latencies leave the warm-up out. `failures` has the reasons of those that are not ok.
    """

    name: str
    requests: int
    rate_rps: float
    failures: list[FailureSummary] = []


class PhaseSummary(RequestSummary, frozen=True, kw_only=True):
    """The part of a run that is one stage, the warm-up, or the rest.

    `begin_s` and `end_s` are seconds of the run's activity; `end_s` is None if only the last request ends it.
    A request belongs to the phase in which it was due, or in a closed run taken. `due` is how many are due in
    it in all, None without a rate; `requests` how many of them are accounted so far, to which the outcomes
    sum, and `completed` how many were answered in full. `sent_rps` and `completed_rps` are the requests
    sent and answered in its time so far, per second, and `planned_rps` the mean rate that is planned for that
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


def measure_rate(requests: float, seconds: float) -> float:
    """How many requests there were per second; 0 if no time has passed."""
    return requests / seconds if seconds > 0 else 0.0

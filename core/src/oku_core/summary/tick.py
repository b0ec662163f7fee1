"""The message that followers of a run receive each second."""

import msgspec

from oku_core.accounting.outcome import build_no_causes
from oku_core.accounting.run_state import RunState
from oku_core.messaging.printed import PrintedSummary
from oku_core.results.sample import Sample
from oku_core.summary.request_summary import FailureSummary
from oku_core.thresholds.threshold_summary import ThresholdSummary


class TargetTick(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one target, or of the inner requests of one name, so far.

    They lag a few seconds behind the workers.

    Attributes:
        name: the name of the target, or of the requests.
        outcomes: the counts of outcomes in the order of `OUTCOMES`.
        p50_ms: the median of the latencies, without the warm-up; None if there are none, as the next one is.
        p99_ms: the 99th percentile.
    """

    name: str
    outcomes: list[int]
    p50_ms: float | None = None
    p99_ms: float | None = None


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a run.

    Attributes:
        run: the id of the run.
        state: the state of the run.
        notices: waits and problems of the run, one line each.
        sample: the load of this second, merged over all workers.
        clock_s: how many seconds of its time have passed, of a run that has a rate or ends after a time; None
            for other runs.
        length_s: how many seconds it lasts.
        phase_left_s: how many seconds are left in the phase that its clock is in; None if only the last
            request ends it.
        planned_in_flight: how many requests are planned to be in flight over all workers; None without such
            stages.
        thresholds: the thresholds of the run as judged so far, in their order.
        not_sent: why accounted requests were not sent, in the order of `NOT_SENT_CAUSES`.
        failures: the most frequent reasons of accounted requests that are not ok, at most three.
        targets: the account of each target, in the order of the spec; empty if the spec names none.
        inner_requests: the counts of requests that user code has made within iterations, by name;
            of the 100 names with the most requests, sorted.
        printed: what user code has printed so far; None if it is nothing.
    """

    run: str
    state: RunState
    notices: list[str] = []
    sample: Sample
    clock_s: float | None = None
    length_s: float | None = None
    phase_left_s: float | None = None
    planned_in_flight: int | None = None
    thresholds: list[ThresholdSummary] = []
    not_sent: list[int] = msgspec.field(default_factory=build_no_causes)
    failures: list[FailureSummary] = []
    targets: list[TargetTick] = []
    inner_requests: list[TargetTick] = []
    printed: PrintedSummary | None = None

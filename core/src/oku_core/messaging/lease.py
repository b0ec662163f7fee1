"""The messages about a range: a lease from the coordinator, a claim and a report from the worker.

They travel as JSON over the broker, and may be lost, delayed, duplicated or forged. `find_fault` checks
whether a report is plausible; the ledger decides whether it counts.
"""

import re
import secrets
from itertools import pairwise

import msgspec

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import build_no_counts, count_answered, is_account
from oku_core.spec.spec import Spec

LEASE_SLOTS = 2
"""How many leases a worker may have at a time: one that runs, and the next one."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The range `[start, stop)` of a run, given to one worker once.

    Attributes:
        id: the id of this lease alone; a range that is given out again gets a new id.
        run: the id of the run.
        start: the first index of the range.
        stop: the first index after the range.
        start_by: the Unix time after which the message is stale and must be ignored.
        spec: the spec of the requests, including the URLs to send them to.
    """

    id: str
    run: str
    start: int
    stop: int
    start_by: float
    spec: Spec


class Claim(msgspec.Struct, frozen=True, kw_only=True, tag="claim"):
    """A worker announces that it is about to send the first request of a lease.

    Attributes:
        lease: the id of the lease.
        execution: the id of this attempt; a duplicated lease message leads to a second attempt.
        worker: the name of the worker.
        incarnation: the id of the worker's process; a restarted worker has the same name and another
            incarnation.
        at: the Unix time of the announcement.
    """

    lease: str
    execution: str
    worker: str
    incarnation: str
    at: float


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """The result of a lease. It covers `[start, done)` except for the `unfinished` indices.

    Attributes:
        lease: the id of the lease.
        execution: the id of the attempt, as in its claim.
        worker: the name of the worker.
        incarnation: the id of the worker's process.
        start: the first index of the lease.
        done: the first index that was not begun.
        unfinished: the indices below `done` that had no answer when the worker had to stop, in ascending
            order; at most as many as the concurrency.
        outcomes: the counts of outcomes in the order of `OUTCOMES`; their sum is the number of covered
            requests.
        statuses: the number of responses by status code.
        bytes_received: the number of bytes in response bodies.
        latency: the latencies of fully answered requests, from sending to the last byte, including
            connecting.
        started_at: the Unix time of the first request.
        ended_at: the Unix time of the last answer.
        cpu_s: the processor time of the worker since its last report.
        peak_rss_mb: the peak resident memory of the worker so far.
        max_lag_s: the largest lag of the worker's event loop during the lease; never negative.
        busy_share: the largest share, from 0 to 1, of any whole second of the lease that the worker spent
            on a processor or waiting for one; 0 if no whole second was measured.
        saturated: the number of covered requests that ended in seconds in which the worker was short of
            processor time.
        lagged: the number of covered requests that ended in seconds in which the event loop lagged.
        clock_step_s: the largest step by which the clock of the worker's machine was set during the lease.
        refusal: the reason, in one line, why the worker could not begin, such as a missing file or engine;
            empty if it could. A refusal covers no requests.
    """

    lease: str
    execution: str
    worker: str
    incarnation: str
    start: int
    done: int
    unfinished: list[int] = []
    outcomes: list[int] = msgspec.field(default_factory=build_no_counts)
    statuses: dict[str, int] = {}
    bytes_received: int = 0
    latency: HistogramSnapshot = HistogramSnapshot()
    started_at: float
    ended_at: float
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    max_lag_s: float = 0.0
    busy_share: float = 0.0
    saturated: int = 0
    lagged: int = 0
    clock_step_s: float = 0.0
    refusal: str = ""

    @property
    def covered(self) -> int:
        """The number of requests that the report accounts for."""
        return self.done - self.start - len(self.unfinished)


def build_lease_id(run: str, number: int) -> str:
    """Build the id of the `number`th lease of a run; its last part is random."""
    return f"{run}.{number:09d}.{secrets.token_hex(4)}"


def read_lease_number(lease: str) -> int:
    """Read the number of a lease from its id; 0 if `build_lease_id` has not built the id."""
    number = lease.split(".")[-2:-1]
    return int(number[0]) if number and number[0].isdecimal() else 0


Message = Claim | Report
"""A message in the queue `reports`."""

# Sums of figures below this limit still fit the 64-bit integers of the ledger.
_LIMIT = 2**53
# Servers may send any number of up to three digits as a status.
_STATUS = re.compile(r"[0-9]{1,3}")
LONGEST_REFUSAL = 300
"""The longest reason of a refusal, in characters."""
_FIGURES = (
    "bytes_received", "started_at", "ended_at", "cpu_s", "peak_rss_mb", "max_lag_s", "busy_share",
    "clock_step_s",
)  # fmt: skip


def find_fault(report: Report, start: int, stop: int) -> str | None:
    """Say why a report on the lease `[start, stop)` cannot be true; None if it can."""
    return (
        _find_range_fault(report, start, stop)
        or _find_outcome_fault(report)
        or _find_answer_fault(report)
        or _find_figure_fault(report)
        or _find_refusal_fault(report)
    )


def _find_range_fault(report: Report, start: int, stop: int) -> str | None:
    if report.start != start or not start <= report.done <= stop:
        return f"covers [{report.start}, {report.done}), but the lease is [{start}, {stop})"
    if any(b <= a for a, b in pairwise([start - 1, *report.unfinished, report.done])):
        return "the unfinished indices do not rise within what is covered"
    return None


def _find_outcome_fault(report: Report) -> str | None:
    if not is_account(report.outcomes):
        return "the outcomes are not six counts"
    if sum(report.outcomes) != report.covered:
        return f"the outcomes sum to {sum(report.outcomes)}, but {report.covered} are covered"
    return None


def _find_answer_fault(report: Report) -> str | None:
    answered = count_answered(report.outcomes)
    for status, count in report.statuses.items():
        if not _STATUS.fullmatch(status) or count <= 0:
            return f"{count} responses have the status {status!r}"
    if sum(report.statuses.values()) != answered:
        return f"the statuses do not sum to the {answered} answered"
    if fault := report.latency.find_fault():
        return fault
    if report.latency.total != answered:
        return f"the histogram holds {report.latency.total}, but {answered} are answered"
    return None


def _find_figure_fault(report: Report) -> str | None:
    for name in _FIGURES:
        figure = getattr(report, name)
        if not 0 <= figure < _LIMIT:  # NaN fails this comparison, too
            return f"{name} is {figure}"
    for name in ("saturated", "lagged"):
        if not 0 <= (requests := getattr(report, name)) <= report.covered:
            return f"{requests} requests are {name}, but {report.covered} are covered"
    return None


def _find_refusal_fault(report: Report) -> str | None:
    if report.refusal and report.done != report.start:
        return f"it refuses the lease and covers [{report.start}, {report.done})"
    if len(report.refusal) > LONGEST_REFUSAL or not report.refusal.isprintable():
        return f"the refusal is not one line of up to {LONGEST_REFUSAL} printable characters"
    return None

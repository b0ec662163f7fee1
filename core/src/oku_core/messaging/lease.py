"""What coordinator and workers say to each other about a range: lease, claim, report.

These travel as JSON over the broker and may be lost, late, doubled or forged; `find_fault` says whether a
report can be true at all, the ledger says whether it counts.
"""

import re
import secrets
from itertools import pairwise

import msgspec

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import build_no_counts, count_answered, is_account
from oku_core.spec.spec import Spec

LEASE_SLOTS = 2
"""How many leases a worker may have at a time: one that runs and one that waits behind it."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The range `[start, stop)` of a run, given to one worker, once.

    Attributes:
        id: of this lease alone; a range that is given out again gets a new one.
        run: whose request space it is.
        start: first index.
        stop: first index after it.
        start_by: Unix time after which the message is stale and must not be acted on any more.
        spec: what the requests are, with the URLs to ask.
    """

    id: str
    run: str
    start: int
    stop: int
    start_by: float
    spec: Spec


class Claim(msgspec.Struct, frozen=True, kw_only=True, tag="claim"):
    """A worker says that it begins with a lease, before the first request of it.

    Attributes:
        lease: which.
        execution: an id of this one attempt; a doubled message leads to a second one.
        worker: name of the worker.
        incarnation: an id of this process; a restarted worker has the same name and another incarnation.
        at: Unix time.
    """

    lease: str
    execution: str
    worker: str
    incarnation: str
    at: float


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """What came of a lease: it covers `[start, done)` without the `unfinished` indices.

    Attributes:
        lease: which.
        execution: the attempt, as in its claim.
        worker: name of the worker.
        incarnation: its process.
        start: first index of the lease.
        done: first index that was not taken.
        unfinished: indices below `done` whose answer was not in when the worker had to stop, rising; at
            most the concurrency.
        outcomes: counts in the order of `OUTCOMES`; they sum to what is covered.
        statuses: responses by status code.
        bytes_received: of bodies.
        latency: of the requests answered in full, from sending to the last byte, connecting included.
        started_at: Unix time of the first request.
        ended_at: Unix time of the last answer.
        cpu_s: processor time of the worker since its last report.
        peak_rss_mb: largest resident memory of the worker so far.
        max_lag_s: largest lateness of its event loop while the lease was in hand; never below 0.
        busy_share: largest share of a whole second of it that the worker spent on a processor or waiting for
            one, 0 to 1; 0 when no whole second was judged.
        saturated: how many of the requests that it covers ended in seconds in which the worker was short of
            processor time.
        lagged: how many of them ended in seconds in which its event loop was late.
        clock_step_s: the most that the clock of its machine was set by meanwhile.
        refusal: why the worker could not begin, because what the spec asks for is not there, such as a file
            or an engine; one line, empty when it could. Such a report covers nothing.
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
        """How many requests it accounts for."""
        return self.done - self.start - len(self.unfinished)


def build_lease_id(run: str, number: int) -> str:
    """The id of a lease, the `number`th that was cut of a run; its last part is drawn by chance."""
    return f"{run}.{number:09d}.{secrets.token_hex(4)}"


def read_lease_number(lease: str) -> int:
    """How many leases of its run had been cut with this one; 0 for an id that is not of ours."""
    number = lease.split(".")[-2:-1]
    return int(number[0]) if number and number[0].isdecimal() else 0


Message = Claim | Report
"""What may stand in the queue `reports`."""

# Sums of such figures still fit the 64 bits of the ledger.
_LIMIT = 2**53
# What a server sends has three digits and need not be a status that exists.
_STATUS = re.compile(r"[0-9]{1,3}")
LONGEST_REFUSAL = 300
"""Characters."""
_FIGURES = (
    "bytes_received", "started_at", "ended_at", "cpu_s", "peak_rss_mb", "max_lag_s", "busy_share",
    "clock_step_s",
)  # fmt: skip


def find_fault(report: Report, start: int, stop: int) -> str | None:
    """Why a report on the lease `[start, stop)` cannot be true, or None."""
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
        if not 0 <= figure < _LIMIT:  # holds for no NaN either
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

"""What coordinator and workers say to each other about a range: lease, claim, report.

These travel as JSON over the broker and may be lost, late, doubled or forged; `find_fault` says whether a
report can be true at all, the ledger says whether it counts.
"""

import msgspec

from oku_core.histogram import Latency
from oku_core.outcome import OUTCOMES, count_answered
from oku_core.spec import Spec


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
        boot: an id of this process; a restarted worker has the same name and another boot.
        at: Unix time.
    """

    lease: str
    execution: str
    worker: str
    boot: str
    at: float


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """What came of a lease: it covers `[start, done)` without the `unfinished` indices.

    Attributes:
        lease: which.
        execution: the attempt, as in its claim.
        worker: name of the worker.
        boot: its process.
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
        max_lag_s: largest lateness of its event loop while the lease was in hand.
        cpu_share: largest share of one processor in any second of it, 0 to 1.
    """

    lease: str
    execution: str
    worker: str
    boot: str
    start: int
    done: int
    unfinished: list[int] = []
    outcomes: list[int] = [0] * len(OUTCOMES)
    statuses: dict[str, int] = {}
    bytes_received: int = 0
    latency: Latency = Latency()
    started_at: float
    ended_at: float
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    max_lag_s: float = 0.0
    cpu_share: float = 0.0

    @property
    def covered(self) -> int:
        """How many requests it accounts for."""
        return self.done - self.start - len(self.unfinished)


Message = Claim | Report
"""What may stand in the queue `reports`."""


def find_fault(report: Report, start: int, stop: int) -> str | None:
    """Why a report on the lease `[start, stop)` cannot be true, or None."""
    if report.start != start or not start <= report.done <= stop:
        return f"covers [{report.start}, {report.done}), the lease is [{start}, {stop})"
    if any(
        b <= a
        for a, b in zip([start - 1, *report.unfinished], [*report.unfinished, report.done], strict=True)
    ):
        return "the unfinished indices do not rise within what is covered"
    if len(report.outcomes) != len(OUTCOMES) or min(report.outcomes) < 0:
        return "the outcomes are no six counts"
    if sum(report.outcomes) != report.covered:
        return f"the outcomes sum to {sum(report.outcomes)}, {report.covered} are covered"
    answered = count_answered(report.outcomes)
    if min(report.statuses.values(), default=1) <= 0 or sum(report.statuses.values()) != answered:
        return f"the statuses do not sum to the {answered} answered"
    if fault := report.latency.find_fault():
        return fault
    if report.latency.total != answered:
        return f"the histogram holds {report.latency.total}, {answered} are answered"
    if report.bytes_received < 0 or report.cpu_s < 0 or report.peak_rss_mb < 0:
        return "a negative quantity"
    return None

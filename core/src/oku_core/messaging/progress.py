"""What a worker says of itself once a second, and the second of a run that the coordinator makes of it.

Both may be lost: they feed the live view, the dashboards and the judgement who lives, never the account.
"""

import math

import msgspec

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import build_no_counts, is_account
from oku_core.accounting.run_state import RunState

MOST_TROUBLES = 10
_LONGEST_TROUBLE = 300


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One second of one worker, or a few seconds where many workers live.

    Attributes:
        worker: its name.
        incarnation: its process.
        at: Unix time of the worker's clock.
        sequence: rises with each that this process sends; one that does not is a copy.
        seconds: how long the time is that it tells of.
        leases: ids of the leases in hand, with the outcomes of each so far.
        in_flight: requests sent and not yet answered, now.
        outcomes: of this time, in the order of `OUTCOMES`.
        bytes_received: of this time.
        latency: of the requests answered in this time.
        lag_s: largest lateness of the event loop in this time.
        cpu_share: processor time over wall time.
        rss_mb: resident memory now.
        stopping: whether it is about to leave and takes no lease any more.
        troubles: what of itself has failed and is tried again, a line each.
    """

    worker: str
    incarnation: str
    at: float
    sequence: int = 0
    seconds: float = 1.0
    leases: dict[str, list[int]] = {}
    in_flight: int = 0
    outcomes: list[int] = msgspec.field(default_factory=build_no_counts)
    bytes_received: int = 0
    latency: HistogramSnapshot = HistogramSnapshot()
    lag_s: float = 0.0
    cpu_share: float = 0.0
    rss_mb: float = 0.0
    stopping: bool = False
    troubles: list[str] = []

    def find_fault(self) -> str | None:
        """What is wrong with progress that somebody sent, or None."""
        if not all(is_account(counts) for counts in (self.outcomes, *self.leases.values())):
            return "the outcomes are no six counts"
        figures = (self.at, self.in_flight, self.bytes_received, self.lag_s, self.cpu_share, self.rss_mb)
        if not all(0 <= figure < math.inf for figure in figures):
            return "a figure is negative or no number"
        if not 0 < self.seconds < math.inf:
            return f"it tells of {self.seconds} s"
        if len(self.troubles) > MOST_TROUBLES or not all(map(_is_line, self.troubles)):
            return f"its troubles are not up to {MOST_TROUBLES} lines"
        return self.latency.find_fault()


def _is_line(text: str) -> bool:
    return len(text) <= _LONGEST_TROUBLE and text.isprintable()


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a run, merged over all workers.

    Attributes:
        run: whose.
        at: Unix time of the coordinator's clock, at its end.
        seconds: how long the time is that it tells of. Where the coordinator stood still it is longer, as far
            as workers have told of that time.
        state: of the run.
        requests: of the run.
        accounted: requests whose outcome is in the ledger.
        leased: requests in active leases.
        pending: requests in no lease.
        ended: of the leased ones, those that have ended as far as the workers' progress says.
        resent_at_most: requests that may have been sent more than once so far.
        active_s: time that the run has been active.
        rate_rps: requests that ended in it; for each of its seconds, where these are more than one.
        in_flight: over all workers.
        outcomes: of this second, in the order of `OUTCOMES`.
        total_outcomes: since the start, in the ledger and under way, in the order of `OUTCOMES`.
        bytes_received: of this second.
        latency: of this second, merged.
        p50_ms: of the last five seconds, merged; None when nothing was answered.
        p99_ms: likewise.
        workers: how many live.
        lag_s: largest lateness of any worker's event loop.
        notices: what the run waits for, and what does not go as it should, a line each.
    """

    run: str
    at: float
    seconds: float
    state: RunState
    requests: int
    accounted: int
    leased: int
    pending: int
    ended: int
    resent_at_most: int
    active_s: float
    rate_rps: float
    in_flight: int
    outcomes: list[int]
    total_outcomes: list[int]
    bytes_received: int
    latency: HistogramSnapshot
    p50_ms: float | None
    p99_ms: float | None
    workers: int
    lag_s: float
    notices: list[str] = []

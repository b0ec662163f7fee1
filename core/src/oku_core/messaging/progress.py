"""What a worker says of itself once a second, and the second of a run that the coordinator makes of it.

Both may be lost: they feed the live view, the dashboards and the judgement who lives, never the account.
"""

import math

import msgspec

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import build_no_counts, is_account

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
            return "the outcomes are not six counts"
        figures = (self.at, self.in_flight, self.bytes_received, self.lag_s, self.cpu_share, self.rss_mb)
        if not all(0 <= figure < math.inf for figure in figures):
            return "a figure is negative or not a number"
        if not 0 < self.seconds < math.inf:
            return f"it tells of {self.seconds} s"
        if len(self.troubles) > MOST_TROUBLES or not all(map(_is_line, self.troubles)):
            return f"its troubles are more than {MOST_TROUBLES}, or not single lines"
        return self.latency.find_fault()


def _is_line(text: str) -> bool:
    return len(text) <= _LONGEST_TROUBLE and text.isprintable()

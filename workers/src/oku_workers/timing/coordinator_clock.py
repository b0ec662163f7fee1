"""The coordinator's clock, which schedules count by, as this worker knows it.

It turns the coordinator's notices into the coordinator's time, the time of this machine's monotonic clock at
which it shows a certain time, and the bounds of both errors. A worker that shares the coordinator's kernel
shares its monotonic clock, too, and knows it exactly. Others ask for it, and estimate how far it is ahead.

A process that asks another for its clock knows that it was read between the question and the answer, so that
half of the round trip bounds the error (F. Cristian, "Probabilistic clock synchronization", 1989, section 3).
From then on the two clocks drift apart.
"""

import time
from collections import deque
from typing import NamedTuple, Protocol

from oku_core.messaging.order import ClockNotice
from oku_core.process.clock import ClockNs, fetch_kernel_id

DRIFT_PPM = 200
"""How fast two clocks may drift apart, in parts per million: the rate that Spanner assumes of its machines
(J. Corbett et al., "Spanner: Google's globally-distributed database", 2012, section 3)."""
SLEW_PPM = 500
"""How fast an offset in use may change: as fast as the kernel's clock is corrected (D. Mills, RFC 5905,
appendix A.5.6; adjtime(3)), and faster than clocks drift."""
SAMPLES_LAST_NS = 60_000_000_000
"""How long a sample counts, as long as there is a newer one."""
LARGEST_SLEW_NS = 100_000_000
"""By more than this an offset is changed at once: it was wrong, and to mend it slowly would take minutes."""

_PPM = 1_000_000
_NS_PER_S = 1_000_000_000


class ClockSample(NamedTuple):
    """One question that was answered.

    Args:
        asked_ns: when we asked, by our clock.
        shown_ns: what the other clock showed when it was read.
        answered_ns: when we had the answer, by our clock.
    """

    asked_ns: int
    shown_ns: int
    answered_ns: int

    def estimate(self, now_ns: int) -> "ClockEstimate":
        """The estimate at a later time."""
        middle_ns = (self.asked_ns + self.answered_ns) // 2
        drift_ns = (now_ns - self.asked_ns) * DRIFT_PPM // _PPM + 1
        half_trip_ns = (self.answered_ns - self.asked_ns) // 2 + 1
        return ClockEstimate(self.shown_ns - middle_ns, half_trip_ns + drift_ns)


class ClockEstimate(NamedTuple):
    """How far the other clock is ahead, and by how much that may be wrong at most."""

    offset_ns: int
    bound_ns: int


class ClockSamples:
    """The samples of the last minute, of which the best at each time counts."""

    def __init__(self) -> None:
        self._samples: deque[ClockSample] = deque()

    def add(self, sample: ClockSample) -> None:
        """Take in the newest; those that contradict it are forgotten: a clock stood still, as in a sleep."""
        now_ns = sample.answered_ns
        while self._samples and self._samples[0].asked_ns < now_ns - SAMPLES_LAST_NS:
            self._samples.popleft()
        newest = sample.estimate(now_ns)
        if (before := self.estimate(now_ns)) is not None and (
            abs(newest.offset_ns - before.offset_ns) > newest.bound_ns + before.bound_ns
        ):
            self._samples.clear()
        self._samples.append(sample)

    def estimate(self, now_ns: int) -> ClockEstimate | None:
        """The estimate by the sample with the smallest bound; None if there is no sample."""
        estimates = (sample.estimate(now_ns) for sample in self._samples)
        return min(estimates, key=lambda estimate: estimate.bound_ns, default=None)


class SlewedOffset:
    """An offset that follows better ones without a jump: no due time is passed over or comes twice."""

    def __init__(self, offset_ns: int, now_ns: int) -> None:
        self._offset_ns = self._target_ns = offset_ns
        self._at_ns = now_ns

    def follow(self, target_ns: int, now_ns: int) -> None:
        """Approach another offset from now on; take it at once if it is far away."""
        self._offset_ns, self._at_ns = self.find(now_ns), now_ns
        self._target_ns = target_ns
        if abs(target_ns - self._offset_ns) > LARGEST_SLEW_NS:
            self._offset_ns = target_ns

    def find(self, now_ns: int) -> int:
        """The offset now."""
        reach_ns = (now_ns - self._at_ns) * SLEW_PPM // _PPM
        return self._offset_ns + max(-reach_ns, min(reach_ns, self._target_ns - self._offset_ns))


class NoticeListener(Protocol):
    """Is notified of the coordinator's clock."""

    def on_notice(self) -> None:
        """A notice has arrived."""


class CoordinatorClock:
    """Shows the time of the coordinator; belongs to the thread of the event loop.

    Args:
        kernel: whose monotonic clock this process reads, as `fetch_kernel_id` names it.

    Attributes:
        notice: the coordinator's newest notice of its clock; None before the first.
    """

    def __init__(self, kernel: str | None = None, monotonic_ns: ClockNs = time.monotonic_ns) -> None:
        self._kernel = fetch_kernel_id() if kernel is None else kernel
        self._monotonic_ns = monotonic_ns
        self.notice: ClockNotice | None = None
        self._listener: NoticeListener | None = None
        self._samples = ClockSamples()
        self._offset: SlewedOffset | None = None

    def attach(self, listener: NoticeListener) -> None:
        """Notify a listener of each notice."""
        self._listener = listener

    def set_notice(self, notice: ClockNotice) -> None:
        """Use a notice of the coordinator's clock."""
        before, self.notice = self.notice, notice
        if before is None or notice.kernel != before.kernel:
            self._samples = ClockSamples()
        elif notice.offset_ns != before.offset_ns:
            self._offset = None
        self._follow()
        if self._listener is not None:
            self._listener.on_notice()

    def add_sample(self, kernel: str, sample: ClockSample) -> None:
        """Add a reading of the coordinator's monotonic clock."""
        if self.notice is not None and kernel == self.notice.kernel:
            self._samples.add(sample)
            self._follow()

    @property
    def must_ask(self) -> bool:
        """Whether the clock can only be known by asking, and there is an address to ask."""
        return self.notice is not None and bool(self.notice.host) and not self._shares_kernel

    @property
    def is_known(self) -> bool:
        """Whether the clock is known; nothing can be sent on schedule before."""
        return self._offset is not None

    @property
    def bound_s(self) -> float | None:
        """By how much `now` may be wrong at most; None if the clock is not known."""
        now_ns = self._monotonic_ns()
        estimate = self._estimate(now_ns)
        if self._offset is None or estimate is None:
            return None
        return (estimate.bound_ns + abs(estimate.offset_ns - self._offset.find(now_ns))) / _NS_PER_S

    def now(self) -> float:
        """The Unix time that the coordinator's clock shows; raises `LookupError` if it is not known."""
        return (self._monotonic_ns() + self._find_offset_ns()) / _NS_PER_S

    def to_local_ns(self, unix_s: float) -> int:
        """When the coordinator's clock shows a Unix time, by this machine's monotonic clock in nanoseconds.

        Raises:
            LookupError: the clock is not known.
        """
        return round(unix_s * _NS_PER_S) - self._find_offset_ns()

    @property
    def _shares_kernel(self) -> bool:
        return self.notice is not None and bool(self._kernel) and self.notice.kernel == self._kernel

    def _estimate(self, now_ns: int) -> ClockEstimate | None:
        """How far the coordinator's clock is ahead of our monotonic clock."""
        if self.notice is None:
            return None
        if self._shares_kernel:
            return ClockEstimate(self.notice.offset_ns, 0)
        ahead = self._samples.estimate(now_ns)
        return ahead and ClockEstimate(self.notice.offset_ns + ahead.offset_ns, ahead.bound_ns)

    def _follow(self) -> None:
        now_ns = self._monotonic_ns()
        if (estimate := self._estimate(now_ns)) is None:
            return
        if self._offset is None:
            self._offset = SlewedOffset(estimate.offset_ns, now_ns)
        else:
            self._offset.follow(estimate.offset_ns, now_ns)

    def _find_offset_ns(self) -> int:
        if self._offset is None:
            raise LookupError("the coordinator's clock is not known")
        return self._offset.find(self._monotonic_ns())

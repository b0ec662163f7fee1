"""The clock of the coordinator, by which schedules count, as this worker knows it.

In comes what the coordinator says of its clock; out go its time, the time of this machine's monotonic clock
at which it shows a certain time, and by how much both may be wrong. Whoever shares the coordinator's kernel
shares its monotonic clock, too, and knows it exactly. Others ask for it, and estimate how far it is ahead.
"""

import time
from typing import Protocol

from oku_core.messaging.order import ClockNotice
from oku_core.process.clock import ClockNs, fetch_kernel_id
from oku_workers.timing.clock_estimate import ClockEstimate, ClockSample, ClockSamples, SlewedOffset

_NS_PER_S = 1_000_000_000


class NoticeListener(Protocol):
    """Waits for what the coordinator says of its clock."""

    def on_notice(self) -> None:
        """The coordinator has said something."""


class CoordinatorClock:
    """Shows the time of the coordinator; belongs to the thread of the event loop.

    Args:
        kernel: whose monotonic clock this process reads, as `fetch_kernel_id` names it.
        monotonic_ns: that clock, in nanoseconds.

    Attributes:
        notice: what the coordinator said last of its clock; None if it has not said anything yet.
    """

    def __init__(self, kernel: str | None = None, monotonic_ns: ClockNs = time.monotonic_ns) -> None:
        self._kernel = fetch_kernel_id() if kernel is None else kernel
        self._monotonic_ns = monotonic_ns
        self.notice: ClockNotice | None = None
        self._listener: NoticeListener | None = None
        self._samples = ClockSamples()
        self._offset: SlewedOffset | None = None

    def attach(self, listener: NoticeListener) -> None:
        """Tell a listener of each notice."""
        self._listener = listener

    def set_notice(self, notice: ClockNotice) -> None:
        """Follow what the coordinator says of its clock."""
        before, self.notice = self.notice, notice
        if before is None or notice.kernel != before.kernel:
            self._samples = ClockSamples()
        elif notice.offset_ns != before.offset_ns:
            self._offset = None
        self._follow()
        if self._listener is not None:
            self._listener.on_notice()

    def add_sample(self, kernel: str, sample: ClockSample) -> None:
        """The coordinator has told its monotonic clock."""
        if self.notice is not None and kernel == self.notice.kernel:
            self._samples.add(sample)
            self._follow()

    @property
    def must_ask(self) -> bool:
        """Whether the clock can only be known from someone who tells it, and there is such a one."""
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

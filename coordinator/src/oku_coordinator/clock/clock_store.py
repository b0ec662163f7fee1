"""Keeps the coordinator's clock continuous over restarts during a run, and sends it to workers.

Schedules count by this clock: it ignores later changes of the machine's clock. Its offset from the kernel's
monotonic clock is stored beside the ledger and is valid until the next boot. After a boot, or on another
machine, the coordinator takes the clock from the workers.
"""

import contextlib
import logging
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.order import ClockNotice
from oku_core.messaging.progress import Progress
from oku_core.process.clock import SteadyClock, fetch_kernel_id
from oku_core.process.private_files import write_private

_log = logging.getLogger(__name__)

LISTEN_S = 2.5
"""How long to listen to workers that may know the clock: most of them report twice in this time."""


class _KeptClock(msgspec.Struct, frozen=True, kw_only=True):
    """The clock in its file."""

    kernel: str
    offset_ns: int


_KEPT: JsonDecoder[_KeptClock] = JsonDecoder(_KeptClock)


class ClockAddress(NamedTuple):
    """The UDP address of the clock."""

    host: str
    port: int


class ClockStore:
    """Keeps one clock.

    Args:
        kernel: the id of the kernel whose monotonic clock carries it, from `fetch_kernel_id`.

    Attributes:
        is_settled: whether the clock is final: there was none before, or it is known.
        address: where workers query the monotonic clock; None if it is not served.
    """

    def __init__(self, clock: SteadyClock, path: Path, kernel: str | None = None) -> None:
        self._clock = clock
        self._path = path
        self.kernel = fetch_kernel_id() if kernel is None else kernel
        self.is_settled = True
        self.address: ClockAddress | None = None
        self._offsets_ns: dict[str, int] = {}
        """The offset of the previous clock by process, the largest reported: messages take time to arrive."""

    def restore(self, *, is_run_active: bool) -> None:
        """Continue the clock of the previous coordinator, if a run is active."""
        kept = self._read()
        if is_run_active and kept is not None and self.kernel and kept.kernel == self.kernel:
            self._clock.adopt(kept.offset_ns)
        elif is_run_active:
            self.is_settled = False
            return
        self._keep()

    def record_progress(self, reports: Iterable[Progress], now: float) -> None:
        """Record progress that arrived at `now`, in monotonic seconds."""
        for progress in reports if not self.is_settled else ():
            if progress.coordinator_at is not None:
                offset_ns = round((progress.coordinator_at - now) * 1e9)
                known_ns = self._offsets_ns.get(progress.incarnation, offset_ns)
                self._offsets_ns[progress.incarnation] = max(known_ns, offset_ns)

    def settle(self) -> None:
        """Adopt the clock of the workers, after listening to them for `LISTEN_S`."""
        if self.is_settled:
            return
        if self._offsets_ns:
            self._clock.adopt(find_median_offset_ns(self._offsets_ns.values()))
            _log.info("the clock continues from the clocks of %d workers", len(self._offsets_ns))
        self._offsets_ns.clear()
        self.is_settled = True
        self._keep()

    def anchor(self) -> None:
        """Follow the machine's clock again. Call this only while no run is being measured."""
        self._clock.anchor()
        self._keep()

    def describe(self) -> ClockNotice:
        """The notice of the clock for workers."""
        host, port = self.address or ("", 0)
        return ClockNotice(kernel=self.kernel, offset_ns=self._clock.offset_ns, host=host, port=port)

    def _keep(self) -> None:
        kept = _KeptClock(kernel=self.kernel, offset_ns=self._clock.offset_ns)
        try:
            write_private(self._path, msgspec.json.encode(kept).decode())
        except OSError as error:
            _log.warning("a restarted coordinator will not know this clock: %s", error)

    def _read(self) -> _KeptClock | None:
        with contextlib.suppress(OSError, JsonError):
            return _KEPT.decode(self._path.read_bytes())
        return None


def find_median_offset_ns(offsets_ns: Iterable[int]) -> int:
    """The offset of a clock by the median of the workers; a few wrong ones do not move it far.

    Raises:
        StatisticsError: no worker has reported it.
    """
    return statistics.median_low(offsets_ns)

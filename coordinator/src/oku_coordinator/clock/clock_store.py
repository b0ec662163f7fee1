"""Keeps the coordinator's clock the same over restarts in the middle of a run, and tells it to workers.

A schedule counts by this clock: if the machine's clock was set meanwhile, it goes on as before. Its offset
from the kernel's monotonic clock is kept beside the ledger, and holds until the next boot. After a boot, or
on another machine, the workers know what the clock was.
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
"""How long to listen to workers that may know what the clock was: in this time most of them speak twice."""


class _KeptClock(msgspec.Struct, frozen=True, kw_only=True):
    """The clock as it stands in its file."""

    kernel: str
    offset_ns: int


_KEPT: JsonDecoder[_KeptClock] = JsonDecoder(_KeptClock)


class ClockAddress(NamedTuple):
    """Whom to ask, by UDP."""

    host: str
    port: int


class ClockStore:
    """Keeps one clock.

    Args:
        kernel: whose monotonic clock carries it, as `fetch_kernel_id` names it.

    Attributes:
        is_settled: whether the clock is the one to count by: there was none before, or it is known.
        address: whom workers may ask for the monotonic clock; None if nobody answers.
    """

    def __init__(self, clock: SteadyClock, path: Path, kernel: str | None = None) -> None:
        self._clock = clock
        self._path = path
        self.kernel = fetch_kernel_id() if kernel is None else kernel
        self.is_settled = True
        self.address: ClockAddress | None = None
        self._offsets_ns: dict[str, int] = {}
        """What workers say of the clock before, each at most: what they say takes its time to come here."""

    def restore(self, *, is_run_active: bool) -> None:
        """Go on with the clock of the coordinator before this one, if a run is active."""
        kept = self._read()
        if is_run_active and kept is not None and self.kernel and kept.kernel == self.kernel:
            self._clock.adopt(kept.offset_ns)
        elif is_run_active:
            self.is_settled = False
            return
        self._keep()

    def record_progress(self, heard: Iterable[Progress], now: float) -> None:
        """Workers have reported, at `now` in monotonic seconds."""
        for progress in heard if not self.is_settled else ():
            if progress.coordinator_at is not None:
                offset_ns = round((progress.coordinator_at - now) * 1e9)
                known_ns = self._offsets_ns.get(progress.incarnation, offset_ns)
                self._offsets_ns[progress.incarnation] = max(known_ns, offset_ns)

    def settle(self) -> None:
        """Adopt the clock that the workers know, once they were listened to for `LISTEN_S`."""
        if self.is_settled:
            return
        if self._offsets_ns:
            self._clock.adopt(find_median_offset_ns(self._offsets_ns.values()))
            _log.info("the clock goes on as %d workers know it", len(self._offsets_ns))
        self._offsets_ns.clear()
        self.is_settled = True
        self._keep()

    def anchor(self) -> None:
        """Follow the clock of the machine again. Call this only while nothing is being measured."""
        self._clock.anchor()
        self._keep()

    def describe(self) -> ClockNotice:
        """What workers are told of the clock."""
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
    """The offset of a clock as most workers know it; a few that are wrong do not move it far.

    Raises:
        StatisticsError: no worker knows it.
    """
    return statistics.median_low(offsets_ns)

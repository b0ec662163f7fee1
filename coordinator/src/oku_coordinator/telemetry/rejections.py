"""Messages that were dropped unread: counted, logged, and reported in notices.

Messages of workers with another protocol version are among them: these get no leases.
"""

import logging
import threading
import time
from collections.abc import Iterator

from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.signing import PROTOCOL, RejectedMessageError, RejectionLog
from oku_core.process.clock import Clock

_log = logging.getLogger(__name__)

_GONE_AFTER_S = 60.0
_MOST = 1000
_SHOWN = 3


class VersionSkew:
    """Tracks the workers with another protocol version in the last minute; thread-safe.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen_at: dict[tuple[str, int], float] = {}

    def record(self, error: OtherProtocolError) -> None:
        """Record a message of such a worker."""
        now, key = self._clock(), (error.worker, error.protocol)
        with self._lock:
            self._seen_at = {other: at for other, at in self._seen_at.items() if now - at <= _GONE_AFTER_S}
            is_new = key not in self._seen_at and len(self._seen_at) < _MOST
            if is_new or key in self._seen_at:
                self._seen_at[key] = now
        if is_new:
            _log.warning("%s: it gets no leases", error, extra={"worker": error.worker})

    def describe(self) -> str:
        """The names of these workers, and advice; empty if there are none."""
        now = self._clock()
        with self._lock:
            recent = sorted(key for key, at in self._seen_at.items() if now - at <= _GONE_AFTER_S)
        if not recent:
            return ""
        shown = ", ".join(f"{worker} (protocol {protocol})" for worker, protocol in recent[:_SHOWN])
        more = f" and {len(recent) - _SHOWN} more" if len(recent) > _SHOWN else ""
        return (
            f"workers of another version get no leases; this coordinator speaks protocol {PROTOCOL}:"
            f" {shown}{more}; run the same version of Oku on all"
        )


class Rejections:
    """Messages that were dropped unread; thread-safe.

    Args:
        metrics: counts them.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rejected = RejectionLog(_log, metrics.count_rejected)
        self._version_skew = VersionSkew()

    def record(self, error: RejectedMessageError) -> None:
        """Record a dropped message."""
        if isinstance(error, OtherProtocolError):
            self._metrics.count_rejected(error.rejection)
            self._version_skew.record(error)
        else:
            self._rejected.record(error)

    def describe(self) -> Iterator[str]:
        """Recently dropped messages, a line per kind."""
        yield from filter(None, (self._version_skew.describe(), self._rejected.describe()))

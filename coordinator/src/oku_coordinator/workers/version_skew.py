"""Workers that speak another version of the protocol: they are named in a notice and get no leases."""

import logging
import threading
import time
from collections.abc import Callable

from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.signing import PROTOCOL

_log = logging.getLogger(__name__)

_GONE_AFTER_S = 60.0
_MOST = 1000
_SHOWN = 3


class VersionSkew:
    """Such workers that were heard in the last minute; usable from any thread.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._heard: dict[tuple[str, int], float] = {}

    def record(self, error: OtherProtocolError) -> None:
        """One of them has spoken."""
        now, key = self._clock(), (error.worker, error.protocol)
        with self._lock:
            self._heard = {other: at for other, at in self._heard.items() if now - at <= _GONE_AFTER_S}
            is_new = key not in self._heard and len(self._heard) < _MOST
            if is_new or key in self._heard:
                self._heard[key] = now
        if is_new:
            _log.warning("%s: it gets no leases", error, extra={"worker": error.worker})

    def describe(self) -> str:
        """Who they are, and what to do; empty when there are none."""
        now = self._clock()
        with self._lock:
            heard = sorted(key for key, at in self._heard.items() if now - at <= _GONE_AFTER_S)
        if not heard:
            return ""
        shown = ", ".join(f"{worker} (protocol {protocol})" for worker, protocol in heard[:_SHOWN])
        more = f" and {len(heard) - _SHOWN} more" if len(heard) > _SHOWN else ""
        return (
            f"workers of another version get no leases; this coordinator speaks protocol {PROTOCOL}:"
            f" {shown}{more}; run the same version of Oku on all"
        )

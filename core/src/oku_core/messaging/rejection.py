"""Messages that are not taken: why, and a line about them that no flood makes longer."""

import logging
import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum

_LOG_EVERY_S = 60.0


class Rejection(StrEnum):
    """Why a message is not taken."""

    FORGED = "forged"
    """It is not signed, or not with this key."""
    MALFORMED = "malformed"
    """It cannot be read, or cannot be true."""
    OTHER_PROTOCOL = "other_protocol"
    """It is signed, and speaks another version of the protocol."""


class RejectedMessageError(ValueError):
    """A message that is not taken."""

    rejection = Rejection.MALFORMED


class MalformedMessageError(RejectedMessageError):
    """What came is not one of our messages."""


class ForgedMessageError(RejectedMessageError):
    """What came was not signed by who should have."""

    rejection = Rejection.FORGED


class RejectionLog:
    """Counts what is rejected, from any thread, and logs it at most once a minute.

    Args:
        logger: gets the lines.
        count: told of each.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        logger: logging.Logger,
        count: Callable[[Rejection], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._unlogged = 0
        self._logged_at = self._noted_at = -math.inf
        self._total = 0
        self._last = ""

    def note(self, error: RejectedMessageError) -> None:
        """One more is rejected."""
        self._count(error.rejection)
        with self._lock:
            self._noted_at = self._clock()
            self._last = str(error)
            self._total += 1
            self._unlogged += 1
            if self._noted_at - self._logged_at < _LOG_EVERY_S:
                return
            unlogged, self._unlogged, self._logged_at = self._unlogged, 0, self._noted_at
        self._logger.warning(
            "messages from the broker were dropped: %d, the last because %s", unlogged, error
        )

    def describe(self) -> str:
        """What was dropped, if anything was in the last minute; else empty."""
        with self._lock:
            if self._clock() - self._noted_at > _LOG_EVERY_S:
                return ""
            return f"messages from the broker were dropped: {self._total}, the last because {self._last}"

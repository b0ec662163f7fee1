"""Rejected messages: the reasons, and a log of them that a flood of messages cannot fill."""

import logging
import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum

_LOG_EVERY_S = 60.0


class Rejection(StrEnum):
    """Why a message is rejected."""

    FORGED = "forged"
    """The message is not signed, or not with this key."""
    MALFORMED = "malformed"
    """The message cannot be read, or cannot be true."""
    OTHER_PROTOCOL = "other_protocol"
    """The message is signed, but has another version of the protocol."""


class RejectedMessageError(ValueError):
    """A message is rejected."""

    rejection = Rejection.MALFORMED


class MalformedMessageError(RejectedMessageError):
    """A message is not one that Oku sends."""


class ForgedMessageError(RejectedMessageError):
    """A message is not signed with the shared key."""

    rejection = Rejection.FORGED


class RejectionLog:
    """Counts rejected messages, and logs them at most once a minute. Any thread may use it.

    Args:
        logger: the logger that gets the lines.
        count: called for each rejected message.
        clock: returns monotonic seconds.
        what: what is rejected, as the lines name it.
    """

    def __init__(
        self,
        logger: logging.Logger,
        count: Callable[[Rejection], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        what: str = "messages from the broker",
    ) -> None:
        self._what = what
        self._logger = logger
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._unlogged = 0
        self._logged_at = self._noted_at = -math.inf
        self._total = 0
        self._last = ""

    def note(self, error: RejectedMessageError, peer: str = "") -> None:
        """Count one more rejected message, from the address `peer` where that is known."""
        self._count(error.rejection)
        with self._lock:
            self._noted_at = self._clock()
            self._last = f"{f'from {peer} ' if peer else ''}because {error}"
            self._total += 1
            self._unlogged += 1
            if self._noted_at - self._logged_at < _LOG_EVERY_S:
                return
            unlogged, self._unlogged, self._logged_at = self._unlogged, 0, self._noted_at
            last = self._last
        self._logger.warning("%s were dropped: %d, the last %s", self._what, unlogged, last)

    def describe(self) -> str:
        """Describe in one line what was dropped; empty if nothing was in the last minute."""
        with self._lock:
            if self._clock() - self._noted_at > _LOG_EVERY_S:
                return ""
            return f"{self._what} were dropped: {self._total}, the last {self._last}"

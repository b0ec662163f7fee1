"""Bounds the log lines that callers without a token can cause: one of a kind a minute, with a count."""

import logging
from dataclasses import dataclass

from oku_core.process.clock import Clock

EVERY_S = 60.0
MOST_KINDS = 32
"""At a time, of those that callers can add to."""


@dataclass
class _Kind:
    due_at: float
    text: str
    left_out: int = 0


class LogThrottle:
    """Passes on the first line of a kind at once, and of those of the next minute the last with their number.

    Args:
        log: takes the lines.
        clock: monotonic seconds.
    """

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}

    def has_room_for(self, kind: str) -> bool:
        """Whether a kind that callers make up may have a line of its own."""
        return kind in self._kinds or len(self._kinds) < MOST_KINDS

    def warn(self, kind: str, text: str, error: BaseException | None = None) -> None:
        """Log `text`, with the traceback of `error`, unless a line of this kind was logged lately.

        Args:
            kind: one of a few names of the program's own; with something from outside in it only if there is
                room for it.
            text: one line.
            error: is shown with its traceback.
        """
        now = self._clock()
        state = self._kinds.get(kind)
        if state is not None:
            state.text, state.left_out = text, state.left_out + 1
            return
        self._kinds[kind] = _Kind(now + EVERY_S, text)
        self._log.warning("%s", text, exc_info=error)

    def flush(self) -> None:
        """Say how many lines were left out of each kind whose minute is over; to be called each second."""
        now = self._clock()
        for kind, state in list(self._kinds.items()):
            if now < state.due_at:
                continue
            del self._kinds[kind]
            if state.left_out:
                self._kinds[kind] = _Kind(now + EVERY_S, state.text)
                self._log.warning("%s (the last of %s like it)", state.text, f"{state.left_out:,}")

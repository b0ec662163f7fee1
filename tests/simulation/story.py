"""The story of a simulation: what happened, in words and with simulated times.

Every line goes into a hash, so two runs of one seed can be compared; the last lines are kept to be told.
"""

import hashlib
from collections import deque
from collections.abc import Callable


class Story:
    """What happened so far.

    Args:
        now: gives the true time.
        kept: how many lines to keep.
    """

    def __init__(self, now: Callable[[], float], kept: int = 80) -> None:
        self._now = now
        self._hash = hashlib.blake2b(digest_size=8)
        self._lines: deque[str] = deque(maxlen=kept)
        self._faults: deque[str] = deque(maxlen=kept)
        self.faults = 0
        """How many faults there were."""

    def note(self, text: str) -> None:
        """Something happened."""
        line = f"{self._now():9.3f} s  {text}"
        self._hash.update(line.encode())
        self._lines.append(line)

    def note_fault(self, text: str) -> None:
        """A fault happened."""
        self.faults += 1
        self.note(f"FAULT: {text}")
        self._faults.append(self._lines[-1])

    @property
    def digest(self) -> str:
        """A hash of all lines so far."""
        return self._hash.hexdigest()

    def tell(self) -> str:
        """The last faults, and then the last of all that happened."""
        return "\n".join(
            ("the last faults:", *list(self._faults)[-15:], "", "what happened last:", *self._lines)
        )

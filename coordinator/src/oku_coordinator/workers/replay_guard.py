"""Tells progress that a worker has just sent from a copy that somebody replays; the signature cannot.

Pure state with the clock passed in. The ledger knows copies of checkpoints by itself; what progress
says is stored nowhere.
"""

from collections import OrderedDict
from typing import TypeVar

from oku_core.messaging.progress import Progress

_T = TypeVar("_T")

_KEPT = 20_000
_CURRENT_S = 60.0
"""After this long a silent process may be followed by one whose clock is behind its own."""


class ReplayGuard:
    """Admits each progress once, and none of a process that another one has followed."""

    def __init__(self) -> None:
        self._sequences: OrderedDict[str, int] = OrderedDict()
        """The last that was heard of each process, by its incarnation."""
        self._current: OrderedDict[str, tuple[str, float, float]] = OrderedDict()
        """By worker: its incarnation, what its clock said last, and when that was, in monotonic seconds."""

    def admits(self, progress: Progress, now: float) -> bool:
        """Whether it is new, at `now` in monotonic seconds; noted if it is."""
        last = self._sequences.get(progress.incarnation)
        if last is not None and progress.sequence <= last:
            return False
        incarnation, at, heard_at = self._current.get(progress.worker, (progress.incarnation, 0.0, now))
        if incarnation != progress.incarnation and (
            last is not None or (progress.at <= at and now - heard_at < _CURRENT_S)
        ):
            return False
        _put(self._sequences, progress.incarnation, progress.sequence)
        _put(self._current, progress.worker, (progress.incarnation, progress.at, now))
        return True


def _put(kept: OrderedDict[str, _T], key: str, value: _T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _KEPT:
        kept.popitem(last=False)

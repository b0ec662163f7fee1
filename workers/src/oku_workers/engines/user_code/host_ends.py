"""Why processes of user code have ended: what their exit codes, the kernel and they themselves say of it."""

import signal
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from oku_core.messaging.host_end import LONGEST_HOST_END, MOST_HOST_ENDS, HostEnd, HostEndReason

TOLD_S = 30.0
"""An end is told for so long: progress may be lost, and a notice has to be read."""
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS)


class ProcessEnd(NamedTuple):
    """How one process has ended.

    Attributes:
        reason: why.
        text: the same in words, of which "it" is the process.
    """

    reason: HostEndReason
    text: str


def explain_end(code: int, *, out_of_memory: bool, last_word: ProcessEnd | None = None) -> ProcessEnd:
    """Say why a process has ended that its worker has not killed.

    Args:
        code: its exit code, negative for a signal.
        out_of_memory: whether the kernel has killed a process for lack of memory lately.
        last_word: what the process itself has said last; None if it has said nothing.
    """
    if code >= 0:
        return last_word or ProcessEnd(HostEndReason.EXITED, f"it exited with code {code}")
    name = _name_signal(-code)
    if -code == signal.SIGKILL and out_of_memory:
        return ProcessEnd(HostEndReason.OUT_OF_MEMORY, f"the kernel killed it for lack of memory ({name})")
    if -code in _CRASHES:
        return ProcessEnd(HostEndReason.CRASHED, f"it crashed ({name})")
    return ProcessEnd(HostEndReason.KILLED, f"it was killed by a signal ({name})")


class HostEnds:
    """The processes of user code of one worker that have ended; belongs to the thread of the event loop.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._number = 0
        self._latest: deque[tuple[float, HostEnd]] = deque(maxlen=MOST_HOST_ENDS)

    def note(self, run: str, end: ProcessEnd, requests: int) -> None:
        """One that ran the user code of a run has ended, with so many iterations in hand."""
        self._number += 1
        text = "".join(char if char.isprintable() else " " for char in end.text)[:LONGEST_HOST_END]
        told = HostEnd(run=run, number=self._number, reason=end.reason, text=text, requests=requests)
        self._latest.append((self._clock(), told))

    def list_latest(self) -> list[HostEnd]:
        """Those that are still to be told, the newest last."""
        now = self._clock()
        return [end for at, end in self._latest if now - at < TOLD_S]


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

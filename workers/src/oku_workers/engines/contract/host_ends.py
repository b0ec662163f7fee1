"""Why processes of user code ended, by their exit codes, the kernel's counts and their own last messages."""

import signal
import time
from collections import deque
from typing import NamedTuple

from oku_core.messaging.process_ends import LONGEST_HOST_END, MOST_HOST_ENDS, HostEnd, HostEndReason
from oku_core.process.clock import Clock

REPORTED_S = 30.0
"""How long an end is reported: progress may be lost, and people need time to read a notice."""
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS)


class ProcessEnd(NamedTuple):
    """How one process ended.

    Attributes:
        reason: why.
        text: the same in words, which call the process "it".
    """

    reason: HostEndReason
    text: str


def explain_end(code: int, *, out_of_memory: bool, last_word: ProcessEnd | None = None) -> ProcessEnd:
    """Say why a process ended that its worker did not kill.

    Args:
        code: its exit code, negative for a signal.
        out_of_memory: whether the kernel has lately killed a process for lack of memory.
        last_word: the reason that the process itself gave; None if it gave none.
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
    """The ends of one worker's processes of user code; belongs to the thread of the event loop.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._number = 0
        self._latest: deque[tuple[float, HostEnd]] = deque(maxlen=MOST_HOST_ENDS)

    def record(self, run: str, end: ProcessEnd, requests: int) -> None:
        """Record the end of a process that ran the user code of a run, with its iterations in hand."""
        self._number += 1
        text = "".join(char if char.isprintable() else " " for char in end.text)[:LONGEST_HOST_END]
        recorded = HostEnd(run=run, number=self._number, reason=end.reason, text=text, requests=requests)
        self._latest.append((self._clock(), recorded))

    def list_latest(self) -> list[HostEnd]:
        """The ends that are still reported, the newest last."""
        now = self._clock()
        return [end for at, end in self._latest if now - at < REPORTED_S]


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

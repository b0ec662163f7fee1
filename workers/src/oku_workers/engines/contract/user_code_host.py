"""The process of user code: its environment, its limits, and the reason of its end.

Anyone may have written user code. It gets only the variables of the worker that the operator names: it cannot
read others from the memory of the worker either. It leaves no process behind.
"""

import os
import re
import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oku_core.messaging.process_ends import LONGEST_HOST_END, MOST_HOST_ENDS, HostEnd, HostEndReason
from oku_core.process.clock import Clock

REPORTED_S = 30.0
"""How long an end is reported: progress may be lost, and people need time to read a notice."""
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS)
EVERYTHING = "*"
"""As the name of a variable: all variables except Oku's own."""
_OURS = ("OKU_", "CELERY_")
"""They hold keys and the URL of the broker."""
_HARMLESS = re.compile(
    r"HOME|LANG|LANGUAGE|LC_[A-Z]+|LOGNAME|PATH|SSL_CERT_DIR|SSL_CERT_FILE|TMPDIR|TZ|USER"
    # Without these some interpreters find neither their libraries nor themselves.
    r"|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|PYTHONHOME|PYTHONPATH"
)


class ProcessEnd(NamedTuple):
    """How one process ended."""

    reason: HostEndReason
    text: str
    """The same in words, which call the process "it"."""


def explain_end(code: int, *, out_of_memory: bool, last_word: ProcessEnd | None = None) -> ProcessEnd:
    """Explain by exit code, the kernel's count and its last message why a process ended by itself.

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
    """The ends of one worker's processes of user code; belongs to the thread of the event loop."""

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


@dataclass(frozen=True)
class Isolation:
    """The environment and the limits of hosts.

    Attributes:
        environment: their environment variables.
        memory_bytes: how much memory each of their processes may hold; 0 without a limit.
        niceness: how much they give way to their worker where both want the same processor: 0 to 19.
        adopts: whether this process adopts and ends their orphans (`adopt_orphans`).
        is_confined: whether they give up all files but their own.
        is_unconfinable: whether they should, but the kernel has no Landlock.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: choose_environment(os.environ))
    memory_bytes: int = 0
    niceness: int = 0
    adopts: bool = False
    is_confined: bool = False
    is_unconfinable: bool = False


def choose_environment(ours: Mapping[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """The variables that user code sees.

    Args:
        ours: the variables of this process.
        names: variables to pass beside paths and locales; `EVERYTHING` passes all except Oku's own.
    """
    return {
        name: value
        for name, value in ours.items()
        if not name.startswith(_OURS) and (EVERYTHING in names or name in names or _HARMLESS.fullmatch(name))
    }

"""The supervisor of a server with several processes: it forks them, restarts those that die, and stops all.

The parent has no event loop and no thread. It blocks its signals and takes them one by one with `sigwait`, so
that none arrives at a bad moment. On Linux, the children die with it even when it is killed.
"""

import logging
import os
import signal
import sys
import time
from typing import Never, Protocol, Self

from oku_core.process.prctl import end_with_parent

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
HEALTHY_AFTER_S = 5.0
"""A child that has lived this long is restarted at once; any other waits, longer each time."""
STOP_WITHIN_S = 0.5
"""How long the children may take to stop before they are killed."""

_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
_AWAITED = _STOP_SIGNALS | {signal.SIGCHLD, signal.SIGALRM}

_log = logging.getLogger(__name__)


class Children(Protocol):
    """The child processes of a server."""

    def run(self, number: int) -> None:
        """Run the child with this number; it must return on SIGTERM."""


class ChildSupervisor:
    """Keeps `count` children alive: starts them when it is entered, and stops them when it is left."""

    def __init__(self, count: int, children: Children) -> None:
        self._children = children
        self._number_by_pid: dict[int, int] = {}
        self._started_at = [0.0] * count
        self._pause_s = [0.0] * count
        self._due_at = dict.fromkeys(range(count), 0.0)
        self._former_mask: set[int] = set()

    def __enter__(self) -> Self:
        """Start the children."""
        # Some systems discard SIGCHLD, blocked or not, while it has no handler.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        try:
            self._start_due()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the children."""
        try:
            self._stop()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._former_mask)

    def watch(self) -> None:
        """Restart children that have died, until SIGTERM or SIGINT."""
        while signal.sigwait(_AWAITED) not in _STOP_SIGNALS:
            self._reap()
            self._start_due()

    def _start_due(self) -> None:
        now = time.monotonic()
        for number, due_at in list(self._due_at.items()):
            if due_at <= now:
                del self._due_at[number]
                self._started_at[number] = now
                self._number_by_pid[self._fork(number)] = number
        next_s = min(self._due_at.values(), default=0.0) - now
        signal.setitimer(signal.ITIMER_REAL, max(next_s, 0.001) if self._due_at else 0)

    def _fork(self, number: int) -> int:
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _be_child(parent, self._children, number)
        return pid

    def _reap(self) -> None:
        for pid, number in list(self._number_by_pid.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            del self._number_by_pid[pid]
            now = time.monotonic()
            pause_s = find_restart_pause_s(self._pause_s[number], now - self._started_at[number])
            self._pause_s[number] = pause_s
            self._due_at[number] = now + pause_s
            _log.warning(
                "process %d (pid %d) ended with %s, it is started again in %.1f s",
                number + 1, pid, _describe(os.waitstatus_to_exitcode(status)), pause_s,
            )  # fmt: skip

    def _stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, STOP_WITHIN_S)
        for pid in self._number_by_pid:
            os.kill(pid, signal.SIGTERM)
        while self._number_by_pid:
            if signal.sigwait({signal.SIGCHLD, signal.SIGALRM}) == signal.SIGALRM:
                for pid in self._number_by_pid:
                    os.kill(pid, signal.SIGKILL)
            for pid in list(self._number_by_pid):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self._number_by_pid[pid]
        signal.setitimer(signal.ITIMER_REAL, 0)


def find_restart_pause_s(last_pause_s: float, lived_s: float) -> float:
    """How long to wait before restarting a child that died, given the pause before its last start."""
    if lived_s >= HEALTHY_AFTER_S:
        return 0.0
    return min(max(2 * last_pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)


def _be_child(parent: int, children: Children, number: int) -> Never:
    """Run a forked process until it ends; it never returns into the parent's code."""
    code = 1
    try:
        if not end_with_parent(parent):
            os._exit(code)
        # Until the event loop handles these signals, they end this process silently.
        for awaited in _AWAITED:
            signal.signal(awaited, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
        children.run(number)
        code = 0
    except BaseException:  # noqa: BLE001  # this process ends here after any error
        _log.critical("process ended by an error", exc_info=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _describe(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

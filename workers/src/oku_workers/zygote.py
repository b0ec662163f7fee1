"""The zygote: forks the worker, and a fresh one after each run of user code.

It is the process of `oku worker`. It has loaded all code and runs none of it. So a fresh worker needs neither
a restart of the container nor a second for imports, and inherits nothing that user code has changed in the
worker before it. The worker is its only child. The zygote ends as the worker does, unless that asks for a
successor.

A child inherits limits, priority, scheduling policy and affinity, which another process of the same user can
change from outside (prlimit(2)). A process may lower its own, but cannot always raise them again.
"""

import gc
import logging
import os
import resource
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn, Self

from oku_core.process.prctl import end_with_parent
from oku_workers.engines.user_code.orphans import end_children, end_orphans, has_orphans

_log = logging.getLogger(__name__)

_LIMITS = sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")})
_OOM_SCORE = Path("/proc/self/oom_score_adj")
EXIT_RENEW = 75
"""Exit code of a worker that a fresh one is to replace (EX_TEMPFAIL of sysexits.h)."""
EXIT_TAINTED = 71
"""Exit code of a zygote whose workers would not be fresh (EX_OSERR)."""
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT})
_AWAITED = _ENDING | {signal.SIGCHLD}


@dataclass(frozen=True)
class ProcessState:
    """What this process hands on to its children."""

    limits: dict[int, tuple[int, int]]
    """The soft and the hard limit of each resource."""
    niceness: int
    policy: tuple[int, int]
    """How it is scheduled, and its priority among processes of that policy."""
    processors: frozenset[int]
    """Not compared, as the system may also add and remove some."""
    oom_score: str

    @classmethod
    def read(cls) -> Self:
        """The state of this process."""
        is_linux = sys.platform == "linux"
        return cls(
            {limit: resource.getrlimit(limit) for limit in _LIMITS},
            os.getpriority(os.PRIO_PROCESS, 0),
            (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) if is_linux else (0, 0),
            frozenset(os.sched_getaffinity(0)) if is_linux else frozenset(),
            _OOM_SCORE.read_text() if is_linux else "",
        )

    def restore(self) -> list[str]:
        """Undo the changes since; returns descriptions of those that could not be undone."""
        now = self.read()
        for limit, pair in self.limits.items():
            if pair != now.limits[limit]:
                with suppress(OSError, ValueError):
                    resource.setrlimit(limit, pair)
        if now.policy != self.policy:
            with suppress(OSError):
                os.sched_setscheduler(0, self.policy[0], os.sched_param(self.policy[1]))
        if now.niceness != self.niceness:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, self.niceness)
        if now.processors != self.processors:
            with suppress(OSError):
                os.sched_setaffinity(0, self.processors)
        if now.oom_score != self.oom_score:
            with suppress(OSError):
                _OOM_SCORE.write_text(self.oom_score)
        now = self.read()
        changed = {
            "the limits": now.limits != self.limits,
            "the scheduling policy": now.policy != self.policy,
            "the priority": now.niceness != self.niceness,
            "the OOM score": now.oom_score != self.oom_score,
        }
        return [what for what, is_changed in changed.items() if is_changed]


class Forked(NamedTuple):
    """Where `fork_workers` returns.

    Attributes:
        exit_code: of the last worker, in the zygote; None in a worker.
        is_renewal: whether this worker takes the place of one that has run user code.
    """

    exit_code: int | None
    is_renewal: bool = False


def fork_workers() -> Forked:
    """Fork workers until one has ended for good; returns its exit code. In each worker, returns at once.

    SIGTERM and SIGINT reach the worker as SIGTERM, and no other one follows it. If a signal has killed the
    worker, this process dies of the same signal.
    """
    state = ProcessState.read()
    gc.collect()
    gc.freeze()  # a collection in a worker would copy the memory that it shares with this process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    is_ending = is_renewal = False
    while True:
        worker, lifeline = _fork_worker()
        if worker == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return Forked(None, is_renewal)
        status, is_ending = _wait(worker)
        os.close(lifeline)
        if end_orphans():
            _log.warning("user code has left processes behind, which are ended")
        if os.WIFSIGNALED(status):
            _die_of(signal.Signals(os.WTERMSIG(status)))
        code = os.waitstatus_to_exitcode(status)
        if code != EXIT_RENEW:
            return Forked(code)
        if is_ending or signal.sigpending() & _ENDING:
            return Forked(0)
        if fault := _find_fault(state):
            _log.error("no fresh worker can be started: %s", fault)
            return Forked(EXIT_TAINTED)
        _log.info("a fresh worker takes the place of one that has run user code")
        is_renewal = True


def _fork_worker() -> tuple[int, int]:
    """Fork; returns 0 in the worker, and its process id here, each with its end of a pipe.

    The worker ends when the other end of the pipe is closed: when this process has ended.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    zygote = os.getpid()
    reading, writing = os.pipe()
    if (worker := os.fork()) != 0:
        os.close(reading)
        return worker, writing
    os.close(writing)
    end_with_parent(zygote, by=signal.SIGCONT)  # a worker that user code has stopped goes on, and ends itself
    threading.Thread(target=_end_with_zygote, args=(reading,), name="lifeline", daemon=True).start()
    return 0, reading


def _end_with_zygote(lifeline: int) -> None:
    """Wait until the zygote has ended, and kill this process, but before it all that user code has started.

    The kernel could kill it at once. Processes that user code has left behind would then become children of
    a process that does not know them.
    """
    os.read(lifeline, 1)
    end_children()
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(worker: int) -> tuple[int, bool]:
    """Wait for the end of the worker; returns its status, and whether this process must end."""
    is_ending = False
    while True:
        number = signal.sigwait(_AWAITED)
        if number in _ENDING:
            is_ending = True
            # Not SIGINT, which a terminal sends to the worker, too. Only this loop buries the worker, so the
            # number is still its own.
            os.kill(worker, signal.SIGTERM)
        elif (status := _bury(worker)) is not None:
            return status, is_ending


def _find_fault(state: ProcessState) -> str:
    """Undo changes of user code to this process; returns a description of those that remain."""
    if has_orphans():
        return "user code starts processes faster than they can be ended"
    if changed := state.restore():
        return (
            f"another process has changed {' and '.join(changed)} of this one, which cannot change them back"
        )
    return ""


def _bury(worker: int) -> int | None:
    """Reap ended children, orphans included; returns the status of the worker if it is among them."""
    ended = None
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == worker:
                ended = found[1]
    except ChildProcessError:
        pass
    return ended


def _die_of(number: signal.Signals) -> NoReturn:
    """End as the worker did, as far as the first process of a container can."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)

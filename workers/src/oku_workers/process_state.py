"""What a child inherits from its parent that another process of the same user can change from outside.

Limits need no more than the same user (prlimit(2)), and neither do priority, scheduling policy and affinity.
A process may lower its own, but cannot always raise them again.
"""

import os
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_LIMITS = sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")})
_OOM_SCORE = Path("/proc/self/oom_score_adj")


@dataclass(frozen=True)
class ProcessState:
    """What this process hands on to its children.

    Attributes:
        limits: the soft and the hard limit of each resource.
        niceness: its priority.
        policy: how it is scheduled, and its priority among processes of that policy.
        processors: those that it may run on; not compared, as the system may also add and remove some.
        oom_score: how soon it is ended where memory runs out.
    """

    limits: dict[int, tuple[int, int]]
    niceness: int
    policy: tuple[int, int]
    processors: frozenset[int]
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
        """Undo what was changed since; returns in words what could not be undone."""
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

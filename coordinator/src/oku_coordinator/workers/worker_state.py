"""What the coordinator knows of one worker: what it has said of itself, and how fast it is in its run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from oku_coordinator.workers.run_rate import RunRate
from oku_core.accounting.outcome import count_sent
from oku_core.messaging.hook import HookAttempt
from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.process_ends import HostEnd
from oku_core.messaging.progress import LeaseProgress, Progress


@dataclass
class WorkerState:
    """What the coordinator knows of one worker."""

    name: str
    incarnation: str
    heard_at: float
    """When it was last heard, or was first named."""
    has_spoken: bool = False
    heartbeat_interval_s: float = 0.0
    """The time that its last event told of."""
    stopping: bool = False
    troubles: Sequence[str] = ()
    """What of it has failed and is tried again."""
    clock_ahead_s: float = 0.0
    """How far its clock is ahead of ours."""
    clock_bound_s: float | None = None
    """By how much our clock may be wrong at most as it knows it; None if it does not know it."""
    refused_run: str | None = None
    """The run that it cannot begin with, as it said last."""
    refusal: str = ""
    """Why."""
    refused_at: float = -math.inf
    """When it said so first."""
    leases: dict[str, LeaseProgress] = field(default_factory=dict)
    """How far it was with each of its leases when it was last heard."""
    specs: frozenset[str] = frozenset()
    """The runs whose spec it knows."""
    hooks: frozenset[HookAttempt] = frozenset()
    """The hooks that it has in hand."""
    files: frozenset[str] = frozenset()
    """The files of the run that has its turn, by their digests, that it has or cannot have."""
    memory_bytes: int = 0
    """How much memory it may use; 0 if that is not known."""
    loaded: str = ""
    """The run whose user code it has loaded or cannot load, by `build_spec_key`."""
    code_run: str = ""
    """The run whose user code it has begun to run; empty if it has run none."""
    host_ends: Sequence[HostEnd] = ()
    """The processes of its user code that ended unexpectedly lately, the newest last."""
    is_suspect: bool = False
    """Whether it has been silent for longer than others."""
    is_unconfinable: bool = False
    """Whether it is to confine user code to its files, but its kernel has no Landlock."""
    rate: RunRate = field(default_factory=lambda: RunRate(""))
    """How fast it gets through the run that it worked on last."""

    @property
    def knows_clock(self) -> bool:
        """Whether it knows our clock, and so when a request on schedule is due."""
        return self.clock_bound_s is not None

    @property
    def has_nothing_left(self) -> bool:
        """Whether it was about to leave when it was last heard, and had no lease any more."""
        return self.stopping and not self.leases

    def can_take(self, run: str | None = None) -> bool:
        """Whether it can take leases, of a run: heard, alive, not about to leave, and not barred from it."""
        is_able = self.has_spoken and not self.stopping
        return is_able and (run is None or (self.refused_run != run and self.is_fresh_for(run)))

    def is_fresh_for(self, run: str) -> bool:
        """Whether it has run no user code of another run."""
        return self.code_run in {"", run}

    def find_rate(self, run: str) -> RunRate:
        """How fast it gets through the run that has its turn; that of another run means nothing."""
        if self.rate.run != run:
            self.rate = RunRate(run)
        return self.rate

    def record_rate(self, progress: Progress) -> None:
        """Take the interval of a heartbeat into the rate of the run that it works on."""
        run = read_lease_run(next(reversed(progress.leases), ""))
        done = progress.runs.get(run)
        if done is not None and self._has_turn(run):
            self.find_rate(run).record_interval(count_sent(done.outcomes), progress.seconds, done.in_flight)

    def record_taken(self, run: str, taken: int) -> None:
        """It says how much it has taken of a run so far."""
        if self._has_turn(run):
            self.find_rate(run).record_taken(taken)

    def _has_turn(self, run: str) -> bool:
        """Whether a run may have its turn. The last word on one before does not make its rate forgotten."""
        return self.rate.run in {"", run}

"""What the coordinator knows of workers: what each has said of itself, and how fast it is in its run.

Of dead processes it knows how far they had gone, as far as others have found their flight records.

Answers may come in bursts, as when a hundred requests take thirty seconds each. So the rate is a mean over
the last ten seconds or over the time in which two windows are answered, whichever is longer; a run begins
with none.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.accounting.outcome import count_sent
from oku_core.messaging.hook import HookAttempt
from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.process_ends import FlightRecord, HostEnd
from oku_core.messaging.progress import LeaseProgress, Progress

_SPAN_S = 10.0
_SPAN_WINDOWS = 2.0
_SILENT_S = 3.0
"""A silence of this length bounds the rate."""
_MOST_KEPT = 10_000
"""Records of so many processes are kept, the newest."""


class RunRate:
    """The rate of one worker in one run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.taken = 0
        """How many indices the worker has taken of the run so far."""
        self._ended = 0.0
        self._seconds = 0.0
        self._in_flight_s = 0.0
        """The requests in flight, times the seconds of which that is known."""
        self._window = 1
        self._has_begun = False

    def record_taken(self, taken: int) -> None:
        """The worker says how many indices it has taken so far."""
        self.taken = max(self.taken, taken)

    def record_interval(self, ended: int, seconds: float, in_flight: int) -> None:
        """Take in a heartbeat interval in which the worker had leases of the run.

        The worker may have begun late in the first in which it sent anything, so that one does not count.

        Args:
            ended: the requests that ended in it.
            seconds: its length.
            in_flight: the requests in flight at its end.
        """
        if not ended and not in_flight:
            return  # it had nothing to do
        if not self._has_begun:
            self._has_begun = True
            return
        self._window = max(self._window, in_flight)
        rate_rps = self._ended / self._seconds if self._seconds else 0.0
        span_s = max(_SPAN_S, _SPAN_WINDOWS * self._window / rate_rps) if rate_rps else math.inf
        kept = math.exp(-seconds / span_s)
        self._ended = self._ended * kept + ended
        self._seconds = self._seconds * kept + seconds
        self._in_flight_s = self._in_flight_s * kept + in_flight * seconds

    @property
    def rate_rps(self) -> float | None:
        """Requests that end in a second; None until one has ended."""
        return self._ended / self._seconds if self._ended else None

    @property
    def mean_in_flight(self) -> float:
        """How many requests were in flight, in the mean over the same time."""
        return self._in_flight_s / self._seconds if self._seconds else 0.0

    def bound(self, window: int) -> float:
        """The most requests that can end in a second: while no answer has come, a window in that time."""
        if self._ended:
            return self._ended / self._seconds
        return window / self._seconds if self._seconds >= _SILENT_S else math.inf


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


class FlightRecords:
    """The records that workers have told of; they are told of for a while, so a restart loses none."""

    def __init__(self) -> None:
        self._records: dict[str, FlightRecord] = {}
        self._used: dict[str, str] = {}
        """By process, the run whose leases were compared with its record."""

    def record(self, found: Iterable[FlightRecord]) -> bool:
        """Take in records; whether one of them is new. The dead write no more, so the first one counts."""
        fresh = [record for record in found if record.incarnation not in self._records]
        for record in fresh:
            self._records[record.incarnation] = record
        while len(self._records) > _MOST_KEPT:
            oldest = next(iter(self._records))
            del self._records[oldest]
            self._used.pop(oldest, None)
        return bool(fresh)

    def find_reached(self, lease: LeaseRecord) -> int | None:
        """The first position of a lease that its process, which is dead, has certainly not taken."""
        record = self._records.get(lease.incarnation)
        return None if record is None else record.find_reached(lease.id)

    def find_unused(self, run: str) -> list[str]:
        """The dead processes whose records were not compared with the leases of a run before."""
        return [incarnation for incarnation in self._records if self._used.get(incarnation) != run]

    def record_used(self, run: str, incarnations: Iterable[str]) -> None:
        """The records of these were compared with the leases of a run."""
        self._used.update(dict.fromkeys(incarnations, run))

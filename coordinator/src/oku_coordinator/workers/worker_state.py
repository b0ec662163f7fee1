"""The state of workers: their reports, and their rates in their run.

For dead processes, it has the positions they reached, from flight records that other workers found.

Responses may come in bursts, as when a hundred requests take thirty seconds each. So the rate is a mean over
the last ten seconds or over the time in which two windows are answered, whichever is longer; a run starts
without a rate.
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
from oku_core.messaging.share import Settled

_SPAN_S = 10.0
_SPAN_WINDOWS = 2.0
_SILENT_S = 3.0
"""A silence of this length bounds the rate."""
_MOST_KEPT = 10_000
"""The number of processes with stored records, the newest."""


class RunRate:
    """The rate of one worker in one run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.taken = 0
        """How many indices of the run the worker has taken."""
        self.early_rps = 0.0
        """Its rate as its last checkpoint reported it; 0 while unknown."""
        self._ended = 0.0
        self._seconds = 0.0
        self._in_flight_s = 0.0
        """The requests in flight, multiplied by the seconds for which they are known."""
        self._window = 1
        self._has_begun = False

    def record_taken(self, taken: int, rate_rps: float) -> None:
        """Record how many indices the worker has taken, and its rate, from a checkpoint."""
        self.taken = max(self.taken, taken)
        self.early_rps = rate_rps

    def record_interval(self, ended: int, seconds: float, in_flight: int) -> None:
        """Record a heartbeat interval in which the worker had leases of the run.

        The first interval with requests does not count: the worker may have started late in it.

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
        """Requests that end per second; None until one has ended."""
        return self._ended / self._seconds if self._ended else None

    @property
    def mean_in_flight(self) -> float:
        """The mean number of requests in flight over the same time."""
        return self._in_flight_s / self._seconds if self._seconds else 0.0

    def bound(self, window: int) -> float:
        """The highest possible rate: before the first response, one window within that time."""
        if self._ended:
            return self._ended / self._seconds
        return window / self._seconds if self._seconds >= _SILENT_S else math.inf


@dataclass
class WorkerState:
    """The coordinator's view of one worker."""

    name: str
    incarnation: str
    last_seen_at: float
    """When it last reported, or was first named."""
    has_reported: bool = False
    heartbeat_interval_s: float = 0.0
    """The length of time that its last event covers."""
    stopping: bool = False
    troubles: Sequence[str] = ()
    """Its failures that are being retried."""
    clock_ahead_s: float = 0.0
    """How far its clock is ahead of ours."""
    clock_bound_s: float | None = None
    """The largest error of our clock as it knows it; None if it does not know our clock."""
    refused_run: str | None = None
    """The run that it last refused."""
    refusal: str = ""
    """The reason of that refusal."""
    refused_at: float = -math.inf
    """When it first refused."""
    leases: dict[str, LeaseProgress] = field(default_factory=dict)
    """The progress of each of its leases in its last report."""
    specs: frozenset[str] = frozenset()
    """The runs whose spec it has."""
    settled: Sequence[Settled] = ()
    """By run, the newest division that it has confirmed."""
    hooks: frozenset[HookAttempt] = frozenset()
    """Its running hooks."""
    files: frozenset[str] = frozenset()
    """The digests of the files of the active run that it has or cannot get."""
    memory_bytes: int = 0
    """How much memory it may use; 0 if unknown."""
    loaded: str = ""
    """The run whose user code it has loaded or cannot load, by `build_spec_key`."""
    code_run: str = ""
    """The run whose user code it has started to run; empty if it has run none."""
    host_ends: Sequence[HostEnd] = ()
    """The user code processes that ended unexpectedly lately, newest last."""
    is_suspect: bool = False
    """Whether it has been silent while others reported."""
    is_unconfinable: bool = False
    """Whether it must sandbox user code, but its kernel has no Landlock."""
    rate: RunRate = field(default_factory=lambda: RunRate(""))
    """Its rate in the last run that it worked on."""

    @property
    def knows_clock(self) -> bool:
        """Whether it knows our clock, and so the due times of a schedule."""
        return self.clock_bound_s is not None

    @property
    def has_nothing_left(self) -> bool:
        """Whether it was leaving in its last report, and had no lease left."""
        return self.stopping and not self.leases

    def can_take(self, run: str | None = None) -> bool:
        """Whether it can take leases, of a run: reporting, alive, not leaving, and not barred from it."""
        is_able = self.has_reported and not self.stopping
        return is_able and (run is None or (self.refused_run != run and self.is_fresh_for(run)))

    def is_fresh_for(self, run: str) -> bool:
        """Whether it has run no user code of another run."""
        return self.code_run in {"", run}

    def find_settled(self, run: str) -> int:
        """The newest division of a run that it has confirmed; 0 for none."""
        return max((each.number for each in self.settled if each.run == run), default=0)

    def find_rate(self, run: str) -> RunRate:
        """Its rate in the active run; its rate in another run is meaningless."""
        if self.rate.run != run:
            self.rate = RunRate(run)
        return self.rate

    def record_rate(self, progress: Progress) -> None:
        """Add the interval of a heartbeat to the rate of its current run."""
        run = read_lease_run(next(reversed(progress.leases), ""))
        done = progress.runs.get(run)
        if done is not None and self._has_turn(run):
            self.find_rate(run).record_interval(count_sent(done.outcomes), progress.seconds, done.in_flight)

    def record_taken(self, run: str, taken: int, rate_rps: float) -> None:
        """Record how many indices of a run it has taken, and its rate, from a checkpoint."""
        if self._has_turn(run):
            self.find_rate(run).record_taken(taken, rate_rps)

    def _has_turn(self, run: str) -> bool:
        """Whether a run may be active. A late message about an earlier run does not reset its rate."""
        return self.rate.run in {"", run}


class FlightRecords:
    """The flight records that workers report; they repeat them for a while, so a restart loses none."""

    def __init__(self) -> None:
        self._records: dict[str, FlightRecord] = {}
        self._used: dict[str, str] = {}
        """By process, the run whose leases were compared with its record."""

    def record(self, found: Iterable[FlightRecord]) -> bool:
        """Add records; returns whether one is new. Dead processes write no more, so the first one counts."""
        fresh = [record for record in found if record.incarnation not in self._records]
        for record in fresh:
            self._records[record.incarnation] = record
        while len(self._records) > _MOST_KEPT:
            oldest = next(iter(self._records))
            del self._records[oldest]
            self._used.pop(oldest, None)
        return bool(fresh)

    def find_reached(self, lease: LeaseRecord) -> int | None:
        """The first position of a lease that its dead process has certainly not taken."""
        record = self._records.get(lease.incarnation)
        return None if record is None else record.find_reached(lease.id)

    def find_unapplied(self, run: str) -> list[str]:
        """The dead processes whose records were not yet compared with the leases of a run."""
        return [incarnation for incarnation in self._records if self._used.get(incarnation) != run]

    def record_applied(self, run: str, incarnations: Iterable[str]) -> None:
        """Record that these records were compared with the leases of a run."""
        self._used.update(dict.fromkeys(incarnations, run))

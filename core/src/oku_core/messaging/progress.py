"""Progress: what a worker reports about itself every second, which is also its heartbeat.

Progress may be lost: it feeds the live view, the dashboards and the detection of dead workers, but never the
account.
"""

import math

import msgspec

from oku_core.accounting.counts import Counts, coarsen_times
from oku_core.accounting.outcome import is_account
from oku_core.messaging.hook import HookAttempt
from oku_core.messaging.process_ends import FlightRecord, HostEnd, find_host_ends_fault, find_records_fault
from oku_core.messaging.share import Settled

MOST_TROUBLES = 10
_LONGEST_TROUBLE = 300


class LeaseProgress(msgspec.Struct, frozen=True, array_like=True):
    """How far a worker is with one of its leases.

    Attributes:
        taken: the first position that was not taken.
        end: the first position that will not be taken.
        outcomes: the counts of outcomes so far, in the order of `OUTCOMES`.
    """

    taken: int
    end: int
    outcomes: list[int]


class RunProgress(Counts, frozen=True, kw_only=True):
    """What one worker did of one run in one heartbeat interval, with the requests that ended in it.

    Attributes:
        in_flight: the number of requests that are sent and not yet answered.
        sent: the number of requests sent in this interval.
        lag_s: the largest lag of the event loop while a lease of the run was under way.
    """

    in_flight: int = 0
    sent: int = 0
    lag_s: float = 0.0

    def coarsen(self) -> "RunProgress":
        """The same with times that make a shorter message."""
        return msgspec.structs.replace(self, times=coarsen_times(self.times))


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One heartbeat interval of one worker: a second, or a few seconds if there are many workers.

    Attributes:
        worker: the name of the worker.
        incarnation: the id of the worker's process.
        at: the Unix time by the worker's clock.
        sequence: rises with each message of this process; a message whose number does not rise is a copy.
        seconds: the length of the interval.
        leases: how far the worker is with each of its leases, those included whose final checkpoint was not
            yet confirmed.
        specs: the runs whose spec it knows (`build_spec_key`), the newest last.
        files: the files of the run that has its turn, by their digests, that it has or cannot have.
        loaded: the run whose user code it has loaded or cannot load (`build_spec_key`); empty without one.
        code_run: the run whose user code it has begun to run; it takes nothing of another one.
        settled: the division that it has settled on, of each run whose share it has.
        hooks: the hooks that it calls, and those whose results it still reports.
        runs: what it did of each run that it has leases of, or had any of in this interval, by the run's id.
        coordinator_at: the Unix time by the coordinator's clock at `at`, as far as the worker knows it; None
            if it does not.
        clock_bound_s: by how much that may be wrong at most; 0 on the machine of the coordinator.
        cpu_share: processor time divided by wall time.
        rss_mb: the current resident memory.
        memory_bytes: how much memory it may use; 0 if that is not known.
        stopping: whether the worker is about to leave and takes no more leases.
        troubles: the worker's own tasks that have failed and are retried, one line each.
        found: the records of dead processes that it has found on its machine.
        host_ends: the processes of its user code that ended unexpectedly in the last half minute, the newest
            last.
        is_unconfinable: whether it is to confine user code to its files, but its kernel has no Landlock.
    """

    worker: str
    incarnation: str
    at: float
    sequence: int = 0
    seconds: float = 1.0
    leases: dict[str, LeaseProgress] = {}
    specs: list[str] = []
    files: list[str] = []
    loaded: str = ""
    code_run: str = ""
    settled: list[Settled] = []
    hooks: list[HookAttempt] = []
    runs: dict[str, RunProgress] = {}
    coordinator_at: float | None = None
    clock_bound_s: float | None = None
    cpu_share: float = 0.0
    rss_mb: float = 0.0
    memory_bytes: int = 0
    stopping: bool = False
    troubles: list[str] = []
    found: list[FlightRecord] = []
    host_ends: list[HostEnd] = []
    is_unconfinable: bool = False

    def find_fault(self) -> str | None:
        """Return the fault of received progress; None if it is valid."""
        of_runs = self.runs.values()
        accounts = [each.outcomes for each in of_runs] + [lease.outcomes for lease in self.leases.values()]
        if not all(map(is_account, accounts)):
            return "the outcomes are not a count for each"
        if not all(0 <= lease.taken <= lease.end for lease in self.leases.values()):
            return "a lease has taken more than there is"
        clock = (self.at, self.coordinator_at or 0.0, self.clock_bound_s or 0.0)
        counts = [
            figure
            for each in of_runs
            for figure in (each.in_flight, each.bytes_received, each.sent, each.lag_s)
        ]
        own = (self.cpu_share, self.rss_mb, self.memory_bytes)
        if not all(0 <= figure < math.inf for figure in (*clock, *counts, *own)):
            return "a figure is negative or not a number"
        if not 0 < self.seconds < math.inf:
            return f"it tells of {self.seconds} s"
        if len(self.troubles) > MOST_TROUBLES or not all(map(_is_line, self.troubles)):
            return f"its troubles are more than {MOST_TROUBLES}, or not single lines"
        histograms = (histogram for each in of_runs for histogram in each.times.values())
        fault = next((fault for histogram in histograms if (fault := histogram.find_fault())), None)
        return fault or find_records_fault(self.found) or find_host_ends_fault(self.host_ends)


def _is_line(text: str) -> bool:
    return len(text) <= _LONGEST_TROUBLE and text.isprintable()

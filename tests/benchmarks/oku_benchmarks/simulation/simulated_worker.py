"""What one simulated worker knows: its leases, how far it is with each, and what it has to say of them.

Requests are taken at a constant rate and answered in the pattern of the posts' own case: a quarter of them at
once, the others after a third, two thirds and three thirds of two windows. So a window of them is in flight
on average, and which positions those are depends on nothing but how far the worker is.
"""

import math
from collections import deque
from collections.abc import Iterator

from tests.kit.outcomes import make_counts

from oku_benchmarks.simulation.simulated_latency import build_coarse_latency, build_latency
from oku_core.accounting.measured_time import Time
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, LeaseFigures, Part
from oku_core.messaging.lease import LeaseBatch, read_lease_number
from oku_core.messaging.order import Control, Stop
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress

_BYTES_OF_ANSWER = 13
_EARLY_S = (0.5, 1.0, 2.0)
"""So long after its first request of a run a worker says how fast it is."""
_MOST_EARLY_S = 6.0
_FEW_ENDED, _FEW_OF = 1, 10
"""So many leases that have ended, or one in so many of all, wait for the next regular checkpoints."""
_SPARE_S = 8.0
"""It asks for more when what it may take lasts so long, or when a third of it is left."""
_SHORTEST_S = 0.05
"""Between two checkpoints."""
_FIRST_REPEAT_S, _FIRST_REPEAT_SHARE = 1.0, 1 / 3


class SimulatedLease:
    """One lease.

    Args:
        lease: its id.
        run: the run.
        length: its positions.
        limit: the first that must not be taken yet.
        window: the concurrency of the run.
        now: the time.
    """

    def __init__(self, lease: str, run: str, length: int, limit: int, window: int, now: float) -> None:
        self.id, self.run, self.end, self.limit = lease, run, length, limit
        self.done = 0
        self.is_said = False
        """Whether the worker has said all that there is."""
        self.confirmed = self.sequence = 0
        self.started_at = 0.0
        self._taken_at = now
        self._delays = tuple(round(2 * window * quarter / 3) for quarter in range(4))
        self._answered_to = 0
        """Positions below this would be answered if none took any time; beyond `done` once it waits for
        answers."""
        self._told: dict[int, int] = {}
        self._untold_by_second: deque[tuple[int, int, int]] = deque()

    @property
    def room(self) -> int:
        """How many positions may be taken now."""
        return max(0, min(self.end, self.limit) - self.done)

    @property
    def has_news(self) -> bool:
        """Whether there is anything that the coordinator has not confirmed."""
        is_touched = self.done > 0 or self.end == 0
        return (is_touched and not self.is_said) or self.confirmed < self.sequence

    @property
    def is_final(self) -> bool:
        """Whether it has ended and nothing is in flight."""
        return self.done >= self.end and self._answered_to - self._delays[-1] >= self.end

    @property
    def covered(self) -> int:
        """How many positions have an outcome."""
        return self.done - sum(len(positions) for positions in self._list_in_flight())

    def take(self, room: int, passed: int, now: float) -> None:
        """Take `room` positions in a time in which there could have been `passed`."""
        if room and not self.started_at:
            self.started_at = now
        self.done += room
        self._answered_to = max(self.done, self._answered_to) + passed - room

    def find_final_in(self) -> int:
        """How many positions' time lasts until it is final, if nothing else is taken first."""
        return max(1, self.end + self._delays[-1] - self._answered_to)

    def build_checkpoint(self, now: float) -> Checkpoint:
        """The next checkpoint; its seconds are those since the last one that was confirmed."""
        self.sequence += 1
        in_flight = sorted(position for positions in self._list_in_flight() for position in positions)
        covered = self.done - len(in_flight)
        self._spread(covered, now)
        changed = {second for sequence, second, _ in self._untold_by_second if sequence > self.confirmed}
        part = Part(
            outcomes=make_counts(covered),
            statuses={"200": covered} if covered else {},
            bytes_received=covered * _BYTES_OF_ANSWER,
            times={Time.LATENCY: build_latency(covered)},
            per_second={second: make_counts(self._told[second]) for second in sorted(changed)},
        )
        return Checkpoint(
            lease=self.id,
            sequence=self.sequence,
            done=self.done,
            end=self.end,
            in_flight=in_flight,
            is_final=self.is_final,
            parts=[part] if covered else [],
            figures=LeaseFigures(
                started_at=self.started_at,
                ended_at=now if covered else 0.0,
                cpu_s=covered / 20_000,
                peak_rss_mb=90.0,
                max_lag_s=0.01,
                busy_share=0.5,
            ),
        )

    def _list_in_flight(self) -> Iterator[range]:
        """The positions in flight, by which quarter they are of."""
        for quarter, delay in enumerate(self._delays):
            first = max(0, self._answered_to - delay)
            yield range(first + (quarter - first) % 4, self.done, 4)

    def _spread(self, covered: int, now: float) -> None:
        """Note what was answered since the last checkpoint, evenly over the seconds since then."""
        new, seconds = covered - sum(self._told.values()), range(int(self._taken_at), int(now) + 1)
        for number, second in enumerate(seconds, 1):
            share = new * number // len(seconds) - new * (number - 1) // len(seconds)
            if share:
                self._told[second] = self._told.get(second, 0) + share
                self._untold_by_second.append((self.sequence, second, share))
        self._taken_at = now
        while self._untold_by_second and self._untold_by_second[0][0] <= self.confirmed:
            self._untold_by_second.popleft()


class SimulatedWorker:
    """One worker.

    Args:
        name: its name.
        incarnation: the id of its process.
        rate_rps: requests per second.
        now: the time at which it joins.
    """

    def __init__(self, name: str, incarnation: str, rate_rps: float, now: float) -> None:
        self.name, self.incarnation = name, incarnation
        self.requests = 0
        self.waited_s = 0.0
        """How long it had a run and nothing that it might take."""
        self.next_at = math.inf
        """When to ask it for checkpoints."""
        self._rate_rps = rate_rps
        self._advanced_at = now
        self._credit = 0.0
        self._leases: dict[str, SimulatedLease] = {}
        self._known: dict[str, float] = {}
        self._runs: list[str] = []
        self._taken = self._allowance = self._told_requests = 0
        self._first_at, self._said_at = 0.0, now
        self._repeat_s = self._first_repeat_s = _FIRST_REPEAT_S
        self._is_waiting = False
        """Whether a message of it is not confirmed; the next one waits."""
        self._told_at = now
        self._window = 1
        self.checkpoint_s = 3.0
        """How often it says how far it is, as the coordinator wants it."""

    def take(self, batch: LeaseBatch, now: float) -> list[str]:
        """Take leases; the ids of those that are new."""
        self.advance(now)
        if batch.run not in self._runs:
            self._runs = [*self._runs[-1:], batch.run]
            self._taken, self._first_at = 0, now
        if batch.spec:
            self._window = batch.spec.concurrency
        new = [lease for lease in batch.leases if lease.id not in self._known]
        for lease in new:
            length = lease.build_ranges().length
            self._leases[lease.id] = SimulatedLease(
                lease.id, lease.run, length, lease.limit, self._window, now
            )
        self._known = {lease: start_by for lease, start_by in self._known.items() if start_by > now}
        self._known |= {lease.id: batch.start_by for lease in batch.leases}
        self._allowance = max(self._allowance, self._count_room())
        self._plan(now)
        return [lease.id for lease in new]

    def obey_control(self, control: Control, now: float) -> None:
        """Take note of what the ledger has decided."""
        self.advance(now)
        for lease, sequence in control.confirmed.items():
            if found := self._leases.get(lease):
                found.confirmed = max(found.confirmed, sequence)
                if found.is_said and found.confirmed >= found.sequence:
                    del self._leases[lease]
        for lease, limit in control.limits.items():
            if found := self._leases.get(lease):
                found.limit = max(found.limit, limit)
        if control.confirmed or control.limits:
            self._allowance = self._count_room()
        if self._is_waiting and all(lease.confirmed >= lease.sequence for lease in self._leases.values()):
            self._is_waiting = False
            self._first_repeat_s = max(_FIRST_REPEAT_S, 2 * (now - self._told_at))
        ended = [self._shorten(lease, end) for lease, end in control.ends.items()]
        self._plan(now, is_urgent=any(ended))

    def obey_stop(self, stop: Stop, now: float) -> None:
        """Take nothing more of what was stopped."""
        self.advance(now)
        ended = [
            self._shorten(lease.id, 0)
            for lease in self._leases.values()
            if lease.run == stop.run and read_lease_number(lease.id) <= stop.up_to
        ]
        self._plan(now, is_urgent=any(ended))

    def advance(self, now: float) -> None:
        """Take what could be taken since the last time."""
        passed_s, self._advanced_at = now - self._advanced_at, now
        self._credit += max(0.0, passed_s) * self._rate_rps
        passed = left = int(self._credit)
        self._credit -= passed
        for lease in self._leases.values():
            room = min(left, lease.room)
            lease.take(room, passed, now)
            left -= room
        self._taken += passed - left
        self.requests += passed - left
        if self._runs:
            self.waited_s += left / self._rate_rps

    def build_checkpoints(self, now: float) -> CheckpointBatch | None:
        """What it has to say now; None if that is nothing."""
        self.advance(now)
        open_leases = [lease for lease in self._leases.values() if lease.has_news]
        if not open_leases:  # its limits may keep it from beginning
            open_leases = [lease for lease in self._leases.values() if not lease.is_said][:1]
        self._said_at = now
        if not open_leases:
            self.next_at = math.inf
            return None
        batch = CheckpointBatch(
            worker=self.name,
            incarnation=self.incarnation,
            run=self._runs[-1],
            taken=self._taken,
            rate_rps=self._rate_rps if now - self._first_at > _EARLY_S[0] / 2 else 0.0,
            checkpoints=[lease.build_checkpoint(now) for lease in open_leases],
        )
        for lease in open_leases:
            lease.is_said = lease.is_final
        if self._is_waiting:
            self._repeat_s = min(max(self.checkpoint_s, self._first_repeat_s), 2 * self._repeat_s)
        else:
            self._is_waiting, self._told_at = True, now
            self._repeat_s = max(self._first_repeat_s, self.checkpoint_s * _FIRST_REPEAT_SHARE)
        self._plan(now)
        return batch

    def build_progress(self, now: float, heartbeat_s: float, sequence: int) -> Progress:
        """Its heartbeat."""
        self.advance(now)
        ended, self._told_requests = self.requests - self._told_requests, self.requests
        build = build_latency if heartbeat_s == 1.0 else build_coarse_latency
        return Progress(
            worker=self.name,
            incarnation=self.incarnation,
            at=now,
            sequence=sequence,
            seconds=heartbeat_s,
            leases={
                lease.id: LeaseProgress(lease.done, max(lease.end, lease.done), make_counts(lease.covered))
                for lease in self._leases.values()
            },
            specs=self._runs,
            runs={
                run: RunProgress(
                    in_flight=self._window,
                    outcomes=make_counts(ended),
                    bytes_received=ended * _BYTES_OF_ANSWER,
                    times={Time.LATENCY: build(ended)},
                    lag_s=0.0021,
                )
                for run in self._runs[-1:]
            },
            cpu_share=0.512,
            rss_mb=90.1,
        )

    def _shorten(self, lease: str, end: int) -> bool:
        found = self._leases.get(lease)
        if found is None:
            return False
        found.end = min(found.end, max(end, found.done))
        return True

    def _count_room(self) -> int:
        return sum(lease.room for lease in self._leases.values())

    def _plan(self, now: float, *, is_urgent: bool = False) -> None:
        """Find out when there is something to say."""
        if not self._leases:
            self.next_at = math.inf
            return
        times = [self._said_at + self.checkpoint_s]
        if self.checkpoint_s <= _MOST_EARLY_S:
            early_at = (self._first_at + early_s for early_s in _EARLY_S)
            times += [at for at in early_at if at > self._said_at]
        unsaid = [lease for lease in self._leases.values() if not lease.is_said]
        if unsaid:
            if all(lease.done >= lease.end for lease in unsaid):
                times.append(now + unsaid[0].find_final_in() / self._rate_rps)
            room = self._count_room()
            if room < sum(lease.end - lease.done for lease in unsaid):  # limits hold the rest back
                spare = min(self._allowance / 3, _SPARE_S * self._rate_rps)
                times.append(now + (room - spare) / self._rate_rps)
            ended = sum(lease.is_final for lease in unsaid)
            is_urgent |= ended > max(_FEW_ENDED, len(self._leases) // _FEW_OF)
        if self._is_waiting:
            times, is_urgent = [self._said_at + self._repeat_s], False
        wished_at = now if is_urgent else min(times)
        self.next_at = max(wished_at, self._said_at + _SHORTEST_S)

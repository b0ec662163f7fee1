"""A worker that sends no request: it takes its leases at a constant rate and makes its reports up.

Its last `concurrency` positions are in flight: a checkpoint depends on nothing but how far the worker is.
"""

import math
from functools import lru_cache

from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, bucket_index, coarsen
from oku_core.accounting.measured_time import Time
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, LeaseFigures, Part
from oku_core.messaging.lease import LeaseBatch, read_lease_number
from oku_core.messaging.order import Control, Stop
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.messaging.share import Settled, Share

_ANSWER_BYTES, _BUCKETS = 13, 1_000
_EARLY_S = (0.5, 1.0, 2.0)  # after its first request of a run a worker reports how fast it is
_MOST_EARLY_S, _REPEAT_S = 6.0, 1.0
_SPARE_S = 8.0
"""It asks for more when what it may take lasts so long, or when a third of it is left."""
_SHORTEST_S = 0.05  # between two checkpoints


@lru_cache(maxsize=64)
def build_latency(count: int, *, is_coarse: bool = False) -> HistogramSnapshot:
    """Latencies in a thousand buckets from 1 s on; a larger count contains a smaller one."""
    first, buckets = bucket_index(1_000_000), min(count, _BUCKETS)
    if not count:
        return HistogramSnapshot()
    pairs = [(first + place, count // buckets + (place < count % buckets)) for place in range(buckets)]
    low_us = [bucket_bounds_us(index)[0] for index, _ in pairs]
    histogram = HistogramSnapshot(
        buckets=[number for pair in pairs for number in pair],
        sum_us=sum(low * times for low, (_, times) in zip(low_us, pairs, strict=True)),
        min_us=low_us[0],
        max_us=low_us[-1],
    )
    return coarsen(histogram) if is_coarse else histogram


class SimulatedLease:
    """One lease of so many positions, of which those below `limit` may be taken."""

    def __init__(self, name: tuple[str, str], length: int, limit: int, window: int) -> None:
        (self.id, self.run), self.end, self.limit = name, length, limit
        self.done = self.confirmed = self.sequence = 0
        self.is_said = False
        """Whether the worker has reported all that there is."""
        self.started_at = 0.0
        self._window, self._passed = window, 0
        self._told: dict[int, int] = {}

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
    def in_flight(self) -> range:
        """The positions that wait for an answer."""
        return range(min(self.done, max(0, self._passed - self._window)), self.done)

    @property
    def is_final(self) -> bool:
        """Whether it has ended and nothing is in flight."""
        return self.done >= self.end and not self.in_flight

    @property
    def final_in(self) -> int:
        """After how many positions' time it is final, if it has ended."""
        return max(1, self.done + self._window - self._passed)

    def take(self, room: int, passed: int, now: float) -> None:
        """Take `room` positions in a time in which there could have been `passed`."""
        if room and not self.started_at:
            self.started_at = now
        self.done += room
        self._passed = max(self.done, self._passed) + passed - room

    def build_checkpoint(self, now: float) -> Checkpoint:
        """The next checkpoint."""
        self.sequence += 1
        in_flight = self.in_flight
        covered = self.done - len(in_flight)
        if new := covered - sum(self._told.values()):
            self._told[int(now)] = self._told.get(int(now), 0) + new
        part = Part(
            outcomes=make_counts(covered),
            statuses={"200": covered},
            bytes_received=covered * _ANSWER_BYTES,
            times={Time.LATENCY: build_latency(covered)},
            per_second={second: make_counts(count) for second, count in self._told.items()},
        )
        return Checkpoint(
            lease=self.id,
            sequence=self.sequence,
            done=self.done,
            end=self.end,
            in_flight=list(in_flight),
            is_final=self.is_final,
            parts=[part] if covered else [],
            figures=LeaseFigures(
                started_at=self.started_at,
                ended_at=now if covered else 0.0,
                cpu_s=covered / 20_000,
                peak_rss_mb=90.0,
            ),
        )


class SimulatedWorker:
    """One worker of so many requests per second, from the time at which it joins."""

    def __init__(self, name: str, incarnation: str, rate_rps: float, now: float) -> None:
        self.name, self.incarnation = name, incarnation
        self.requests, self.waited_s, self.checkpoint_s = 0, 0.0, 3.0
        """`waited_s`: how long it had a run and nothing that it might take."""
        self.next_at = math.inf
        """When to ask it for checkpoints."""
        self._rate_rps, self._advanced_at, self._credit = rate_rps, now, 0.0
        self._leases: dict[str, SimulatedLease] = {}
        self._known: dict[str, float] = {}
        self._runs: list[str] = []
        self._taken = self._allowance = self._told_requests = 0
        self._first_at, self._said_at, self._repeat_s = 0.0, now, _REPEAT_S
        self._is_waiting = False
        """Whether a message of it is not confirmed; the next one waits."""
        self._window = 1
        self._share: Share | None = None

    def take(self, batch: LeaseBatch, now: float) -> list[str]:
        """Take leases; the ids of those that are new."""
        self.advance(now)
        if batch.run not in self._runs:
            self._runs = [*self._runs[-1:], batch.run]
            self._taken, self._first_at = 0, now
        if batch.spec:
            self._window = batch.spec.concurrency // (batch.share.of if batch.share else 1)
        self._share = batch.share or self._share
        new = [lease for lease in batch.leases if lease.id not in self._known]
        for lease in new:
            name, length = (lease.id, lease.run), lease.build_ranges().length
            self._leases[lease.id] = SimulatedLease(name, length, lease.limit, self._window)
        self._known = {lease: start_by for lease, start_by in self._known.items() if start_by > now}
        self._known |= {lease.id: batch.start_by for lease in batch.leases}
        self._allowance = max(self._allowance, self._count_room())
        self._plan(now)
        return [lease.id for lease in new]

    def obey_control(self, control: Control, now: float) -> None:
        """Take note of what the ledger has decided."""
        self.advance(now)
        self._share = control.share or self._share
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
        if all(lease.confirmed >= lease.sequence for lease in self._leases.values()):
            self._is_waiting, self._repeat_s = False, _REPEAT_S
        is_cut = [self._shorten(lease, end) for lease, end in control.ends.items()]
        self._plan(now, is_urgent=any(is_cut))

    def obey_stop(self, stop: Stop, now: float) -> None:
        """Take nothing more of what was stopped."""
        self.advance(now)
        is_cut = [
            self._shorten(lease.id, 0)
            for lease in self._leases.values()
            if lease.run == stop.run and read_lease_number(lease.id) <= stop.up_to
        ]
        self._plan(now, is_urgent=any(is_cut))

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
        """What it has to report now; None if that is nothing."""
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
            self._repeat_s = max(_REPEAT_S, min(self.checkpoint_s, 2 * self._repeat_s))
        self._is_waiting = True
        self._plan(now)
        return batch

    def build_progress(self, now: float, heartbeat_s: float, sequence: int) -> Progress:
        """Its heartbeat."""
        self.advance(now)
        ended, self._told_requests = self.requests - self._told_requests, self.requests
        figures = RunProgress(
            in_flight=self._window,
            outcomes=make_counts(ended),
            bytes_received=ended * _ANSWER_BYTES,
            times={Time.LATENCY: build_latency(ended, is_coarse=heartbeat_s != 1.0)},
            lag_s=0.0021,
        )
        leases = {
            lease.id: LeaseProgress(
                lease.done, max(lease.end, lease.done), make_counts(lease.done - len(lease.in_flight))
            )
            for lease in self._leases.values()
        }
        return Progress(
            worker=self.name, incarnation=self.incarnation, at=now, sequence=sequence, seconds=heartbeat_s,
            leases=leases, specs=self._runs, runs=dict.fromkeys(self._runs[-1:], figures), cpu_share=0.512,
            settled=[Settled(self._share.run, self._share.number)] if self._share else [], rss_mb=90.1,
        )  # fmt: skip

    def _shorten(self, lease: str, end: int) -> bool:
        found = self._leases.get(lease)
        if found is None:
            return False
        found.end = min(found.end, max(end, found.done))
        return True

    def _count_room(self) -> int:
        return sum(lease.room for lease in self._leases.values())

    def _plan(self, now: float, *, is_urgent: bool = False) -> None:
        """Find out when there is something to report."""
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
                times.append(now + unsaid[0].final_in / self._rate_rps)
            room = self._count_room()
            if room < sum(lease.end - lease.done for lease in unsaid):  # limits hold the rest back
                spare = min(self._allowance / 3, _SPARE_S * self._rate_rps)
                times.append(now + (room - spare) / self._rate_rps)
            # A few that have ended wait for the next regular checkpoints.
            is_urgent |= sum(lease.is_final for lease in unsaid) > max(1, len(self._leases) // 10)
        if self._is_waiting:
            times, is_urgent = [self._said_at + self._repeat_s], False
        self.next_at = max(now if is_urgent else min(times), self._said_at + _SHORTEST_S)

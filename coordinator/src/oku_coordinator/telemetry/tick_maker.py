"""Makes the ticks of a run from the progress of its workers and from the ledger."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.storage.records import Standing
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.results.sample import build_sample
from oku_core.results.tick import Tick

_SHORTEST_S = 0.001


class TickMaker:
    """Collects progress and makes a tick of it once a second. Each progress event enters exactly one tick."""

    def __init__(self) -> None:
        self._in_flight: dict[str, int] = {}
        self._leases: dict[str, LeaseProgress] = {}
        self._under_way: dict[str, _UnderWay] = {}
        self._lag_s = 0.0
        self._at: float | None = None
        """The time of the last tick."""
        self._begin()

    def add(self, progress: Progress) -> None:
        """Take in the progress of a worker."""
        self._histogram.add(progress.latency)
        for index, count in enumerate(progress.outcomes):
            self._outcomes[index] += count
        self._bytes_received += progress.bytes_received
        self._lag_s = max(self._lag_s, progress.lag_s)
        self._in_flight[progress.worker] = progress.in_flight
        self._leases |= progress.leases
        self._told_s[progress.worker] = self._told_s.get(progress.worker, 0.0) + progress.seconds

    def forget_worker(self, worker: str) -> None:
        """A dead worker has nothing in flight."""
        self._in_flight.pop(worker, None)

    def build_tick(
        self, standing: Standing, *, workers: int, now: float, notices: Sequence[str] = ()
    ) -> Tick:
        """The tick of the progress since the last one.

        Args:
            standing: of the run in the ledger; what is under way is what progress says of its open leases
                beyond their last checkpoints.
            workers: how many live.
            now: Unix time.
            notices: what the run waits for, and what goes wrong.
        """
        self._leases = {lease: seen for lease, seen in self._leases.items() if lease in standing.leases}
        record, lengths = standing.record, standing.lengths
        under_way = self._find_under_way(standing)
        sample = build_sample(
            at=now,
            seconds=self._measure_s(now),
            requests_total=record.requests,
            accounted=lengths.accounted,
            leased=lengths.leased,
            pending=lengths.pending,
            done=lengths.accounted + min(sum(under_way), lengths.leased),
            resent_at_most=record.resent_at_most,
            active_s=record.measure_active_s(now),
            outcomes_so_far=_sum_up((record.outcomes, under_way)),
            workers=workers,
            in_flight=sum(self._in_flight.values()),
            outcomes=self._outcomes,
            bytes_received=self._bytes_received,
            lag_s=self._lag_s,
            latency=self._histogram.build_latency(),
        )
        self._at = now
        self._begin()
        return Tick(run=record.run, state=record.state, notices=list(notices), sample=sample)

    def _find_under_way(self, standing: Standing) -> list[int]:
        """The outcomes that were seen live beyond the account; only leases with news are looked at again."""
        known, self._under_way = self._under_way, {}
        for lease, seen in self._leases.items():
            found, committed = known.get(lease), standing.leases[lease]
            if found is None or found.seen is not seen or found.committed is not committed:
                found = _UnderWay(seen, committed, _exceed(seen.outcomes, committed))
            self._under_way[lease] = found
        return _sum_up(found.outcomes for found in self._under_way.values())

    def _measure_s(self, now: float) -> float:
        """The time since the last tick; more than a second only as far as workers tell of that time.

        After a coordinator was stopped, the progress of that time arrives at once. After its machine slept,
        there is none.
        """
        if self._at is None:
            return 1.0
        told_s = max(self._told_s.values(), default=0.0)
        return max(_SHORTEST_S, min(now - self._at, max(1.0, told_s)))

    def _begin(self) -> None:
        self._histogram = Histogram()
        self._outcomes = build_no_counts()
        self._bytes_received = 0
        self._lag_s = 0.0
        self._told_s: dict[str, float] = {}


class _UnderWay(NamedTuple):
    """What a lease has beyond its last checkpoint, and the two objects of which that was found."""

    seen: LeaseProgress
    committed: Sequence[int]
    outcomes: list[int]


def _exceed(seen: Sequence[int], committed: Sequence[int]) -> list[int]:
    """What was seen live beyond what is in the account; progress may be the older of the two."""
    return [max(0, live - accounted) for live, accounted in zip(seen, committed, strict=True)]


def _sum_up(accounts: Iterable[Sequence[int]]) -> list[int]:
    return [sum(counts) for counts in zip(*accounts, strict=True)] or build_no_counts()

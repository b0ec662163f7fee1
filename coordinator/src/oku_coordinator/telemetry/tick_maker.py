"""Makes the ticks of a run: what the workers' progress of a second sums to, beside the account."""

from collections import deque
from collections.abc import Sequence

from oku_coordinator.ledger.records import Standing
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.progress import Progress, Tick

_WINDOW_TICKS = 5
_SHORTEST_S = 0.001


class TickMaker:
    """Collects progress and, once a second, gives a tick. Each event enters exactly one tick."""

    def __init__(self) -> None:
        self._window: deque[HistogramSnapshot] = deque(maxlen=_WINDOW_TICKS)
        self._in_flight: dict[str, int] = {}
        self._leases: dict[str, list[int]] = {}
        self._lag_s = 0.0
        self._at: float | None = None
        """When the last tick was."""
        self._begin()

    def add(self, progress: Progress) -> None:
        """Take in what a worker says of its last second."""
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
        """The tick of what came since the last one.

        Args:
            standing: of the run in the ledger; only what was said of its active leases is under way.
            workers: how many live.
            now: Unix time.
            notices: what it waits for, and what does not go as it should.
        """
        self._leases = {lease: counts for lease, counts in self._leases.items() if lease in standing.leases}
        latency = self._histogram.build_latency()
        self._window.append(latency)
        recent = Histogram()
        for second in self._window:
            recent.add(second)
        record, lengths = standing.record, standing.lengths
        under_way = [sum(counts) for counts in zip(*self._leases.values(), strict=True)] or [0] * len(
            OUTCOMES
        )
        seconds = self._measure_s(now)
        tick = Tick(
            run=record.run,
            at=now,
            seconds=seconds,
            state=record.state,
            requests=record.requests,
            accounted=lengths.accounted,
            leased=lengths.leased,
            pending=lengths.pending,
            ended=min(sum(under_way), lengths.leased),
            resent_at_most=record.resent_at_most,
            active_s=record.measure_active_s(now),
            rate_rps=sum(self._outcomes) / max(1.0, seconds),
            in_flight=sum(self._in_flight.values()),
            outcomes=self._outcomes,
            total_outcomes=[a + b for a, b in zip(record.outcomes, under_way, strict=True)],
            bytes_received=self._bytes_received,
            latency=latency,
            p50_ms=recent.quantile_us(0.5) / 1000 if recent.total else None,
            p99_ms=recent.quantile_us(0.99) / 1000 if recent.total else None,
            workers=workers,
            lag_s=self._lag_s,
            notices=list(notices),
        )
        self._at = now
        self._begin()
        return tick

    def _measure_s(self, now: float) -> float:
        """No longer than the time since the last tick, nor than a second unless workers told of more.

        A coordinator that was stopped hears all at once what they did meanwhile; when its machine has slept,
        nobody did anything.
        """
        if self._at is None:
            return 1.0
        told_s = max(self._told_s.values(), default=0.0)
        return max(_SHORTEST_S, min(now - self._at, max(1.0, told_s)))

    def _begin(self) -> None:
        self._histogram = Histogram()
        self._outcomes = [0] * len(OUTCOMES)
        self._bytes_received = 0
        self._lag_s = 0.0
        self._told_s: dict[str, float] = {}

"""Progress of the last second by run: a difference of two measurements of its executions.

The hot path records nothing twice for this; once a second two histograms are subtracted.
"""

import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, compress

from oku_core.accounting.account import Account
from oku_core.accounting.counts import LiveCounts
from oku_core.accounting.histogram import (
    HIGHEST_US,
    HistogramSnapshot,
    bucket_bounds_us,
    bucket_index,
)
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.messaging.progress import RunProgress
from oku_core.process.clock import Clock
from oku_workers.executions.distribution import Distribution
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally

_SHORTEST_S = 1e-6
_STRETCH = 256
"""How many consecutive buckets are compared at once; it divides the number of buckets."""
_NOTHING = [0] * _STRETCH


@dataclass
class ProgressDelta:
    """The changes since the last measurement; the smallest and the largest time are bounds of their buckets.

    Attributes:
        seconds: since then.
        cpu_share: processor time divided by that.
        runs: the changes of each run that has an execution in hand, or had one.
    """

    seconds: float
    cpu_share: float
    runs: dict[str, RunProgress]


class _Times:
    """The news of several distributions.

    Attributes:
        counts: of sparse ones, by bucket.
        sum_us: of all of them.
    """

    def __init__(self) -> None:
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.sum_us = 0
        self._stretches: dict[int, list[int]] = {}
        """Of dense ones: the counts of some buckets in a row, by the first of them."""

    def add_stretch(self, at: int, new: list[int]) -> None:
        """Add the new counts of consecutive buckets, from one on."""
        known = self._stretches.get(at)
        self._stretches[at] = new if known is None else list(map(operator.add, known, new))

    def build_snapshot(self) -> HistogramSnapshot:
        """The same in the form that is sent."""
        pairs: Iterable[tuple[int, int]] = chain.from_iterable(
            zip(compress(range(at, at + _STRETCH), new), filter(None, new), strict=True)
            for at, new in sorted(self._stretches.items())
        )
        if self.counts:
            counts = self.counts.copy()
            for bucket, new in pairs:
                counts[bucket] += new
            pairs = sorted(counts.items())
        buckets = list(chain.from_iterable(pairs))
        if not buckets:
            return HistogramSnapshot()
        return HistogramSnapshot(
            buckets=buckets,
            sum_us=self.sum_us,
            min_us=bucket_bounds_us(buckets[0])[0],
            max_us=min(bucket_bounds_us(buckets[-2])[1], HIGHEST_US),
        )


class _SeenTimes:
    """What a distribution held at the last measurement."""

    def __init__(self) -> None:
        self._sum_us = 0
        self._stretches: dict[int, list[int]] = {}
        """As long as it is dense: the counts of some buckets in a row, by the first of them."""
        self._counts: dict[int, int] = {}
        """Afterwards: the count of each bucket that held something."""

    def add_news(self, later: Distribution, news: _Times) -> None:
        """Add what a distribution has more than was seen, which is all of it from now on."""
        news.sum_us += later.sum_us - self._sum_us
        self._sum_us = later.sum_us
        if isinstance(later.counts, list):
            self._add_dense(later.counts, later, news)
        else:
            self._add_sparse(later.counts, news.counts)

    def _add_dense(self, counts: list[int], later: Distribution, news: _Times) -> None:
        first = bucket_index(min(later.min_us, later.max_us)) // _STRETCH * _STRETCH
        for at in range(first, bucket_index(later.max_us) + 1, _STRETCH):
            stretch, before = counts[at : at + _STRETCH], self._stretches.get(at, _NOTHING)
            if stretch != before:
                news.add_stretch(at, list(map(operator.sub, stretch, before)))
                self._stretches[at] = stretch

    def _add_sparse(self, counts: dict[int, int], news: defaultdict[int, int]) -> None:
        for at, stretch in self._stretches.items():
            self._counts |= {bucket: count for bucket, count in enumerate(stretch, at) if count}
        self._stretches.clear()
        for bucket, count in counts.items():
            if new := count - self._counts.get(bucket, 0):
                self._counts[bucket] = count
                news[bucket] += new


@dataclass
class _SeenTally:
    """What a tally had counted at the last measurement: `counts` without times, which stand in `times`."""

    counts: LiveCounts = field(default_factory=LiveCounts)
    times: defaultdict[Time, _SeenTimes] = field(default_factory=lambda: defaultdict(_SeenTimes))


@dataclass
class _News:
    """What the executions of one run have counted since the last measurement; `account` has no times."""

    sent: int = 0
    in_flight: int = 0
    account: Account = field(default_factory=Account)
    times: defaultdict[Time, _Times] = field(default_factory=lambda: defaultdict(_Times))

    def add(self, execution: Execution, seen: "_Seen") -> None:
        """Add what an execution has more than was seen, which is all of it from now on."""
        self.sent, seen.sent = self.sent + execution.sent - seen.sent, execution.sent
        self.in_flight += execution.in_flight
        for tally in execution.tallies:
            self._add_tally(tally, seen.tallies[tally])

    def build(self, lag_s: float, most_in_flight: int) -> RunProgress:
        """The same in the form that is sent."""
        snapshots = ((time, news.build_snapshot()) for time, news in self.times.items())
        return RunProgress(
            in_flight=min(self.in_flight, most_in_flight),
            outcomes=self.account.outcomes,
            bytes_received=self.account.bytes_received,
            times={time: snapshot for time, snapshot in snapshots if snapshot.buckets},
            sent=self.sent,
            lag_s=round(lag_s, 4),
        )

    def _add_tally(self, tally: Tally, seen: _SeenTally) -> None:
        before, outcomes = seen.counts, self.account.outcomes
        if before.outcomes == tally.outcomes:
            return
        for place, count in enumerate(tally.outcomes):
            outcomes[place] += count - before.outcomes[place]
        self.account.bytes_received += tally.bytes_received - before.bytes_received
        seen.counts = LiveCounts(outcomes=list(tally.outcomes), bytes_received=tally.bytes_received)
        for time in LIVE_TIMES:
            if time in tally.times:
                seen.times[time].add_news(tally.times[time], self.times[time])


@dataclass
class _Seen:
    """The state of an execution at the last measurement."""

    sent: int = 0
    tallies: defaultdict[Tally, _SeenTally] = field(default_factory=lambda: defaultdict(_SeenTally))


class ProgressMeter:
    """Measures differences; an execution that leaves between two measurements is measured as it leaves."""

    def __init__(self, measure_cpu_s: Clock, clock: Clock) -> None:
        self._measure_cpu_s = measure_cpu_s
        self._clock = clock
        self._seen: dict[Execution, _Seen] = {}
        self._left: defaultdict[str, _News] = defaultdict(_News)
        """By run, the changes of executions that have left since the last measurement."""
        self._cpu_s = self._at = 0.0

    def start(self) -> None:
        """Begin to measure."""
        self._cpu_s, self._at = self._measure_cpu_s(), self._clock()

    def forget(self, execution: Execution) -> None:
        """An execution leaves; the next measurement includes it once more."""
        self._left[execution.lease.run].add(execution, self._seen.pop(execution, _Seen()))

    def measure(
        self, executions: Iterable[Execution], lags_s: Mapping[str, float], most_in_flight: int
    ) -> ProgressDelta:
        """Measure the progress since the last call of this.

        Args:
            executions: those in hand.
            lags_s: the largest lateness of the event loop by run; 0 for others.
            most_in_flight: requests that are taken and not yet sent, or wait in another process, are not in
                flight.
        """
        by_run, self._left = self._left, defaultdict(_News)
        for execution in executions:
            by_run[execution.lease.run].add(execution, self._seen.setdefault(execution, _Seen()))
        cpu_s, at = self._measure_cpu_s(), self._clock()
        seconds = max(at - self._at, _SHORTEST_S)
        cpu_share = (cpu_s - self._cpu_s) / seconds
        self._cpu_s, self._at = cpu_s, at
        runs = {run: news.build(lags_s.get(run, 0.0), most_in_flight) for run, news in by_run.items()}
        return ProgressDelta(seconds, cpu_share, runs)

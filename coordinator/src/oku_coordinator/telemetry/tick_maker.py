"""Builds the ticks of a run and of its targets, from the progress of workers and from the ledger."""

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

from oku_coordinator.ledger.rules.snapshots import Standing
from oku_coordinator.ledger.rules.tick_lines import find_whole
from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_coordinator.runs.summary.part_summaries import MOST_IN_TICK, summarize_failures
from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import sum_counts
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.results.sample import build_sample
from oku_core.spec.load_plan import build_load_plan
from oku_core.spec.target import Target
from oku_core.summary.tick import TargetTick, Tick

_SHORTEST_S = 0.001
_NOTHING = RunProgress()


class TickMaker:
    """Collects the progress of a run and builds a tick once a second.

    Each progress event enters exactly one tick of each of its runs.

    Args:
        run: the run.

    Attributes:
        at: the time of the last tick; None before the first.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._in_flight: dict[str, int] = {}
        self._leases: dict[str, LeaseProgress] = {}
        self._under_way: dict[str, _UnderWay] = {}
        self._lag_s = 0.0
        self._clock_bound_s: float | None = None
        self.at: float | None = None
        self._start_interval()

    def add(self, progress: Progress) -> None:
        """Add the progress of a worker; data about other runs is ignored."""
        done = progress.runs.get(self._run, _NOTHING)
        self._ended.add(done)
        self._sent += done.sent
        self._lag_s = max(self._lag_s, done.lag_s)
        if progress.clock_bound_s is not None:
            self._clock_bound_s = max(self._clock_bound_s or 0.0, progress.clock_bound_s)
        self._in_flight[progress.worker] = done.in_flight
        self._leases |= progress.leases
        self._reported_s[progress.worker] = self._reported_s.get(progress.worker, 0.0) + progress.seconds

    @property
    def has_news(self) -> bool:
        """Whether any worker has reported since the last tick."""
        return bool(self._reported_s)

    def forget_worker(self, worker: str) -> None:
        """Forget a dead worker, which has nothing in flight."""
        self._in_flight.pop(worker, None)

    def build_tick(
        self,
        standing: Standing,
        *,
        workers: int,
        now: float,
        notices: Sequence[str] = (),
        targets: Sequence[TargetTick] = (),
        inner_requests: Sequence[TargetTick] = (),
    ) -> Tick:
        """Build the tick of the progress since the last one.

        Args:
            standing: the run in the ledger; progress of its open leases beyond their last checkpoints is
                added.
            workers: the number of live workers.
            now: Unix time.
            notices: the notices of the run.
            targets: the ticks of its targets.
            inner_requests: the ticks of its inner requests, by name.
        """
        self._leases = {lease: seen for lease, seen in self._leases.items() if lease in standing.leases}
        record, lengths = standing.record, standing.lengths
        under_way = self._find_uncommitted(standing)
        seconds = self._measure_s(now)
        plan = build_load_plan(record.spec)
        ended = self._ended.build_counts()
        # Random arrivals are counted only once at the starts of seconds.
        begin_s = _read_clock_s(standing, find_whole(now - seconds))
        end_s, clock_s = _read_clock_s(standing, find_whole(now)), _read_clock_s(standing, now)
        sample = build_sample(
            at=now,
            seconds=seconds,
            requests_total=record.requests,
            accounted=lengths.accounted,
            leased=lengths.leased,
            pending=lengths.pending,
            done=lengths.accounted + min(sum(under_way), lengths.leased),
            resent_at_most=record.resent_at_most,
            active_s=record.measure_active_s(now),
            outcomes_so_far=sum_counts((record.outcomes, under_way)),
            workers=workers,
            in_flight=sum(self._in_flight.values()),
            requests_sent=self._sent,
            requests_planned=plan.count(begin_s, end_s),
            phase=plan.find_phase(begin_s),
            outcomes=ended.outcomes,
            bytes_received=ended.bytes_received,
            lag_s=self._lag_s,
            clock_bound_s=self._clock_bound_s if record.spec.is_open else None,
            times=ended.times,
        )
        self.at = now
        self._start_interval()
        return Tick(
            run=record.run,
            state=record.state,
            notices=list(notices),
            sample=sample,
            clock_s=None if plan.length_s is None else min(clock_s, plan.length_s),
            length_s=plan.length_s,
            phase_left_s=plan.measure_left_s(clock_s),
            planned_in_flight=plan.find_in_flight(clock_s),
            not_sent=list(standing.not_sent),
            failures=summarize_failures(record.spec, standing.reasons, MOST_IN_TICK),
            targets=list(targets),
            inner_requests=list(inner_requests),
        )

    def _find_uncommitted(self, standing: Standing) -> list[int]:
        """The live outcomes beyond the account; only leases with news are examined again."""
        known, self._under_way = self._under_way, {}
        for lease, seen in self._leases.items():
            found, committed = known.get(lease), standing.leases[lease]
            if found is None or found.seen is not seen or found.committed is not committed:
                found = _UnderWay(seen, committed, _exceed(seen.outcomes, committed))
            self._under_way[lease] = found
        return sum_counts(found.outcomes for found in self._under_way.values())

    def _measure_s(self, now: float) -> float:
        """The time since the last tick; more than a second only if workers report that time.

        After a pause of the coordinator, the progress of that time arrives at once. After a sleep of its
        machine, there is none.
        """
        if self.at is None:
            return 1.0
        reported_s = max(self._reported_s.values(), default=0.0)
        return max(_SHORTEST_S, min(now - self.at, max(1.0, reported_s)))

    def _start_interval(self) -> None:
        # Thousands of workers may add to it within a second.
        self._ended = Account(times={time: Histogram.build_dense() for time in LIVE_TIMES})
        self._sent = 0
        self._lag_s = 0.0
        self._clock_bound_s = None
        self._reported_s: dict[str, float] = {}


class _UnderWay(NamedTuple):
    """The live outcomes of a lease beyond its last checkpoint, with their two sources."""

    seen: LeaseProgress
    committed: Sequence[int]
    outcomes: list[int]


def _read_clock_s(standing: Standing, at: float) -> float:
    """The time of a run's clock in its newest period; before the period, its time at the start."""
    return 0.0 if standing.period is None else standing.period.measure_s(at)


def _exceed(seen: Sequence[int], committed: Sequence[int]) -> list[int]:
    """The live outcomes beyond the committed ones; progress may be the older of the two."""
    return [max(0, live - accounted) for live, accounted in zip(seen, committed, strict=True)]


MOST_NAMES = 100
"""The most names of inner requests in a tick: the ones with the most requests."""


class TargetTicks:
    """Builds the ticks of targets once a second; quantiles are recomputed only after new latencies."""

    def __init__(self) -> None:
        self._run = ""
        self._known: dict[str, _Quantiles] = {}

    def build(self, run: str, targets: Iterable[Target], accounts: RunAccount) -> list[TargetTick]:
        """The ticks of a run's targets, in their order; zeros without requests."""
        return self._build_all(run, [target.name for target in targets], accounts.parts)

    def build_inner(self, run: str, accounts: RunAccount) -> list[TargetTick]:
        """The ticks of a run's inner requests by name, sorted."""
        counts = {name: _count(accounts.inner, name) for name in accounts.inner.names}
        names = sorted(nlargest(MOST_NAMES, counts, key=lambda name: (counts[name], name)))
        return self._build_all(run, names, accounts.inner)

    def _build_all(self, run: str, names: Iterable[str], accounts: PartAccounts) -> list[TargetTick]:
        if run != self._run:
            self._run, self._known = run, {}
        return [self._build(name, accounts) for name in names]

    def _build(self, target: str, accounts: PartAccounts) -> TargetTick:
        latency = accounts.fetch_measured(target).histogram(Time.LATENCY)
        found = self._known.get(target)
        if found is None or found.total != latency.total:
            found = self._known[target] = _measure(latency)
        return TargetTick(
            name=target,
            outcomes=sum_counts(account.outcomes for account in accounts.list_named(target)),
            p50_ms=found.p50_ms,
            p99_ms=found.p99_ms,
        )


def _count(accounts: PartAccounts, name: str) -> int:
    return sum(account.accounted for account in accounts.list_named(name))


class _Quantiles(NamedTuple):
    """The quantiles of a number of latencies; latencies are only ever added."""

    total: int
    p50_ms: float | None = None
    p99_ms: float | None = None


def _measure(latency: Histogram) -> _Quantiles:
    if not latency.total:
        return _Quantiles(0)
    p50_us, p99_us = latency.quantiles_us([0.5, 0.99])
    return _Quantiles(latency.total, p50_us / 1000, p99_us / 1000)

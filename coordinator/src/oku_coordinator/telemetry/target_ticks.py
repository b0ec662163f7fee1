"""Makes what a tick tells of each target, or of each name of inner requests, from the account of its run."""

from collections.abc import Iterable
from heapq import nlargest
from typing import NamedTuple

from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_core.accounting.account import sum_counts
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.results.tick import TargetTick
from oku_core.spec.target import Target

MOST_NAMES = 100
"""Of how many names of inner requests a tick tells: of those with the most requests."""


class TargetTicks:
    """Makes them once a second; quantiles are computed anew only if there are new latencies."""

    def __init__(self) -> None:
        self._run = ""
        self._known: dict[str, _Quantiles] = {}

    def build(self, run: str, targets: Iterable[Target], accounts: RunAccount) -> list[TargetTick]:
        """What is accounted of each target of a run, in their order; zeros where nothing is yet."""
        return self._build_all(run, [target.name for target in targets], accounts.parts)

    def build_inner(self, run: str, accounts: RunAccount) -> list[TargetTick]:
        """What is counted of the inner requests of a run by name, sorted."""
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
    """The quantiles of so many latencies; latencies are only ever added."""

    total: int
    p50_ms: float | None = None
    p99_ms: float | None = None


def _measure(latency: Histogram) -> _Quantiles:
    if not latency.total:
        return _Quantiles(0)
    p50_us, p99_us = latency.quantiles_us([0.5, 0.99])
    return _Quantiles(latency.total, p50_us / 1000, p99_us / 1000)

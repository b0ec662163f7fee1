"""Makes what a tick tells of each target, or of each name of inner requests, from the account of its run."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from oku_coordinator.ledger.storage.run_account import PartName, RunAccount
from oku_core.accounting.account import Account, sum_counts
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.results.tick import TargetTick
from oku_core.spec.load import WARM_UP
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
        counts: dict[str, int] = {}
        for (_, name), account in accounts.inner.items():
            counts[name] = counts.get(name, 0) + account.accounted
        names = sorted(nlargest(MOST_NAMES, counts, key=lambda name: (counts[name], name)))
        return self._build_all(run, names, accounts.inner)

    def _build_all(
        self, run: str, names: Iterable[str], accounts: Mapping[PartName, Account]
    ) -> list[TargetTick]:
        if run != self._run:
            self._run, self._known = run, {}
        by_name: dict[str, dict[PartName, Account]] = {}
        for part, account in accounts.items():
            by_name.setdefault(part[1], {})[part] = account
        return [self._build(name, by_name.get(name, {})) for name in names]

    def _build(self, target: str, parts: Mapping[PartName, Account]) -> TargetTick:
        measured = (account for (phase, _), account in parts.items() if phase != WARM_UP)
        latencies = [account.histogram(Time.LATENCY) for account in measured]
        total = sum(latency.total for latency in latencies)
        found = self._known.get(target)
        if found is None or found.total != total:
            found = self._known[target] = _measure(latencies, total)
        return TargetTick(
            name=target,
            outcomes=sum_counts(account.outcomes for account in parts.values()),
            p50_ms=found.p50_ms,
            p99_ms=found.p99_ms,
        )


class _Quantiles(NamedTuple):
    """The quantiles of so many latencies; latencies are only ever added."""

    total: int
    p50_ms: float | None = None
    p99_ms: float | None = None


def _measure(latencies: Sequence[Histogram], total: int) -> _Quantiles:
    if not total:
        return _Quantiles(0)
    merged = latencies[0]
    if len(latencies) > 1:
        merged = Histogram()
        for latency in latencies:
            merged.add(latency.build_latency())
    return _Quantiles(total, merged.quantile_us(0.5) / 1000, merged.quantile_us(0.99) / 1000)

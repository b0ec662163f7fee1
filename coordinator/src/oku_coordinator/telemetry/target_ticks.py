"""Makes what a tick tells of each target from the account of its run."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.storage.run_account import RunAccount, sum_counts
from oku_core.accounting.histogram import Histogram
from oku_core.results.tick import TargetTick
from oku_core.spec.load import WARM_UP
from oku_core.spec.target import Target


class TargetTicks:
    """Makes them once a second; quantiles are computed anew only if there are new latencies."""

    def __init__(self) -> None:
        self._run = ""
        self._known: dict[str, _Quantiles] = {}

    def build(self, run: str, targets: Iterable[Target], accounts: RunAccount) -> list[TargetTick]:
        """What is accounted of each target of a run, in their order; zeros where nothing is yet."""
        if run != self._run:
            self._run, self._known = run, {}
        return [self._build(target.name, accounts) for target in targets]

    def _build(self, target: str, accounts: RunAccount) -> TargetTick:
        parts = {name: account for name, account in accounts.parts.items() if name[1] == target}
        latencies = [account.latency for (phase, _), account in parts.items() if phase != WARM_UP]
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

"""The comparison of two runs: B as against A, with a verdict or with the reasons why there is none."""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from oku_cli.comparison.obstacles import Mask, SpecDifference, list_differences, list_obstacles
from oku_cli.comparison.run_seconds import COMPARED_TIMES, RunSeconds
from oku_core.accounting.measured_time import Time
from oku_core.statistics.change import ChangeVerdict, QuantileChange, measure_changes
from oku_core.summary.latency_summary import SUMMARY_QUANTILES, QuantileIntervals
from oku_core.summary.summary import Summary


class Verdict(StrEnum):
    """The outcome of comparing run B with run A."""

    FASTER = "faster"
    """At least one quantile is faster, none is slower."""
    SLOWER = "slower"
    """At least one quantile is slower, none is faster."""
    MIXED = "mixed"
    """Some quantiles are faster, others slower."""
    NO_DIFFERENCE = "no_difference_shown"
    """None differs by more than chance explains."""
    NOT_COMPARABLE = "not_comparable"
    """The runs cannot be judged by each other."""


class ComparedQuantile(msgspec.Struct, frozen=True, kw_only=True):
    """A quantile of both runs, in ms, with its intervals.

    Attributes:
        distribution: one of `COMPARED_TIMES`.
        quantile: `p50` to `p99_9`.
        a_ms: of A; None if there is none.
        b_ms: of B.
        a_interval_ms: the 95 % interval around `a_ms`; None if A is too short for one.
        b_interval_ms: the same around `b_ms`.
        change: how B differs from A, as shares of A; None if it was not judged.
    """

    distribution: str
    quantile: str
    a_ms: float | None
    b_ms: float | None
    a_interval_ms: tuple[float, float] | None
    b_interval_ms: tuple[float, float] | None
    change: QuantileChange | None = None

    @property
    def plain_change(self) -> float | None:
        """The change, judged or not; None if a run has no such quantile."""
        if self.change is not None:
            return self.change.change
        return self.b_ms / self.a_ms - 1 if self.a_ms and self.b_ms is not None else None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side: the verdict on B as against A, or the reasons why it is `not_comparable`.

    The quantiles of the latency come first.
    """

    verdict: Verdict
    reasons: list[str]
    quantiles: list[ComparedQuantile]
    differences: list[SpecDifference]
    a: Summary
    b: Summary

    @property
    def is_judged(self) -> bool:
        """Whether the runs can be judged by each other."""
        return self.verdict is not Verdict.NOT_COMPARABLE

    def fails_as_slower(self, *, allows_undecided: bool = False) -> bool:
        """Whether B is slower at any quantile, or not judged, as when fewer of its requests are ok."""
        if not self.is_judged:
            return not allows_undecided
        return self.verdict in {Verdict.SLOWER, Verdict.MIXED}

    def list_quantiles(self, verdict: ChangeVerdict) -> list[ComparedQuantile]:
        """The quantiles with this verdict."""
        return [each for each in self.quantiles if each.change and each.change.verdict is verdict]


def compare_runs(
    first: RunSeconds, second: RunSeconds, *, mask: Mask, despite: Collection[str] = ()
) -> Comparison:
    """Compare run B, the second, with run A; the keys of a spec in `despite` may differ all the same."""
    differences = list_differences(first.spec, second.spec, mask)
    reasons = list(list_obstacles(first, second, differences, despite))
    changes = {} if reasons else _measure_changes(first, second)
    a, b = first.build_intervals(), second.build_intervals()
    return Comparison(
        verdict=Verdict.NOT_COMPARABLE if reasons else _choose_verdict(changes),
        reasons=reasons,
        quantiles=list(_list_quantiles(a, b, changes)),
        differences=differences,
        a=a,
        b=b,
    )


def _measure_changes(first: RunSeconds, second: RunSeconds) -> dict[tuple[Time, str], QuantileChange]:
    # Draws from two runs have to be independent of each other, those from one run not.
    a, b = first.measure_spreads(seed=1), second.measure_spreads(seed=2)
    ratios = {
        (name, quantile): getattr(second.distributions[name], quantile) / quantile_ms
        for name in a.keys() & b.keys()
        for quantile in a[name].deviations.keys() & b[name].deviations.keys()
        if (quantile_ms := getattr(first.distributions[name], quantile))
    }
    return measure_changes(a, b, ratios)


def _choose_verdict(changes: Mapping[tuple[Time, str], QuantileChange]) -> Verdict:
    seen = {change.verdict for change in changes.values()} - {ChangeVerdict.NO_DIFFERENCE}
    if not seen:
        return Verdict.NO_DIFFERENCE
    return Verdict.MIXED if len(seen) > 1 else Verdict(seen.pop())


def _list_quantiles(
    a: Summary, b: Summary, changes: Mapping[tuple[Time, str], QuantileChange]
) -> Iterator[ComparedQuantile]:
    for name in COMPARED_TIMES:
        figures = [each.find_latency(name) for each in (a, b)]
        intervals: list[Any] = [
            getattr(each, f"{name}_interval_ms") or QuantileIntervals() for each in (a, b)
        ]
        if all(each.max is None for each in figures):
            continue
        for quantile in SUMMARY_QUANTILES:
            yield ComparedQuantile(
                distribution=name,
                quantile=quantile,
                a_ms=getattr(figures[0], quantile),
                b_ms=getattr(figures[1], quantile),
                a_interval_ms=getattr(intervals[0], quantile),
                b_interval_ms=getattr(intervals[1], quantile),
                change=changes.get((name, quantile)),
            )

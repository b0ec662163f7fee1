from collections.abc import Callable

import msgspec
import pytest

from oku_cli.comparison.comparison import ComparedQuantile, Comparison, Verdict
from oku_cli.comparison.wording import describe_verdict
from oku_core.results.summary import Summary
from oku_core.statistics.change import ChangeVerdict, QuantileChange


def make_quantile(
    distribution: str, quantile: str, verdict: ChangeVerdict, visible: float
) -> ComparedQuantile:
    """Make a quantile with a change."""
    change = QuantileChange(change=0.1, low=0.0, high=0.2, verdict=verdict, visible=visible)
    return ComparedQuantile(
        distribution=distribution, quantile=quantile, a_ms=1.0, b_ms=1.1, a_interval_ms=None,
        b_interval_ms=None, change=change,
    )  # fmt: skip


@pytest.fixture
def comparison(make_summary: Callable[..., Summary]) -> Comparison:
    """Two quantiles that differ, and two that do not."""
    quantiles = [
        make_quantile("latency", "p50", ChangeVerdict.SLOWER, 0.04),
        make_quantile("latency", "p99", ChangeVerdict.FASTER, 0.05),
        make_quantile("response_time", "p50", ChangeVerdict.NO_DIFFERENCE, 0.041),
        make_quantile("response_time", "p99", ChangeVerdict.NO_DIFFERENCE, 0.123),
    ]
    summary = make_summary()
    return Comparison(
        verdict=Verdict.MIXED, reasons=[], quantiles=quantiles, differences=[], a=summary, b=summary
    )


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict.MIXED, "B is faster than A at p99 of latency, and slower at p50 of latency"),
        (Verdict.SLOWER, "B is slower than A: p50 of latency"),
        (Verdict.FASTER, "B is faster than A: p99 of latency"),
        (Verdict.NO_DIFFERENCE, "no difference shown (would have seen 4.1 % at p50 and 12 % at p99)"),
        (Verdict.NOT_COMPARABLE, "A and B are not judged by each other"),
    ],
)
def test_a_verdict_is_a_sentence(comparison: Comparison, verdict: Verdict, sentence: str) -> None:
    """It names the quantiles."""
    assert describe_verdict(msgspec.structs.replace(comparison, verdict=verdict)) == sentence

import pytest
from tests.kit.runs.seconds import draw_seconds

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.results.sample import Sample
from oku_core.statistics.change import ChangeVerdict, QuantileChange, measure_changes
from oku_core.statistics.spread import Spread, measure_spread
from oku_core.summary.latency_summary import SUMMARY_QUANTILES


def compare(first: int, second: int, factor: float = 1.0, wave: float = 0.1) -> dict[str, QuantileChange]:
    """Compare two drawn minutes, the second of which is slower by a factor."""
    a, b = (
        draw_seconds(60, seed=seed, requests=25, wave=wave, median_us=20_000 * scale)
        for seed, scale in ((first, 1.0), (second, factor))
    )
    spreads = [_measure(*run, seed) for run, seed in ((a, 1), (b, 2))]
    ratios = {
        (Time.LATENCY, name): b[1].quantile_us(SUMMARY_QUANTILES[name])
        / a[1].quantile_us(SUMMARY_QUANTILES[name])
        for name in spreads[0][Time.LATENCY].deviations
    }
    changes = measure_changes(spreads[0], spreads[1], ratios)
    return {name: change for (_, name), change in changes.items()}


def _measure(samples: list[Sample], whole: Histogram, seed: int) -> dict[Time, Spread]:
    return {Time.LATENCY: measure_spread(samples, Time.LATENCY, whole.total, seed=seed)}


@pytest.mark.heavy
def test_equal_runs_rarely_seem_to_differ() -> None:
    """In ten comparisons of three quantiles each, at most one has any verdict but none."""
    verdicts = [{change.verdict for change in compare(seed, 1000 + seed).values()} for seed in range(10)]
    assert sum(each != {ChangeVerdict.NO_DIFFERENCE} for each in verdicts) <= 1


@pytest.mark.heavy
def test_what_is_said_to_be_visible_is_seen() -> None:
    """In four of five cases; of six here, at least four."""
    seen = 0
    for seed in range(6):
        visible = compare(seed, 1000 + seed)["p50"].visible
        changed = compare(seed, 2000 + seed, 1 + visible)["p50"]
        seen += changed.verdict is ChangeVerdict.SLOWER
    assert seen >= 4


@pytest.mark.parametrize(("factor", "verdict"), [(1.5, ChangeVerdict.SLOWER), (0.6, ChangeVerdict.FASTER)])
def test_a_large_change_is_seen_at_every_quantile(factor: float, verdict: ChangeVerdict) -> None:
    """Its interval is on one side of nothing."""
    for change in compare(1, 2, factor).values():
        assert change.verdict is verdict
        assert change.low <= change.change <= change.high
        assert (change.low > 0) == (verdict is ChangeVerdict.SLOWER)


def test_no_change_below_what_seconds_know_is_claimed() -> None:
    """Two runs without any noise are told apart from 3 % on."""
    quiet = Spread(deviations={"p50": [0.0] * 1000}, blocks=60.0)
    for ratio, verdict in ((1.02, ChangeVerdict.NO_DIFFERENCE), (1.05, ChangeVerdict.SLOWER)):
        changes = measure_changes(
            {Time.LATENCY: quiet}, {Time.LATENCY: quiet}, {(Time.LATENCY, "p50"): ratio}
        )
        assert changes[Time.LATENCY, "p50"].verdict is verdict
    # Nothing to compare gives nothing. Runs may have no quantile in common.
    assert measure_changes({}, {}, {}) == {}

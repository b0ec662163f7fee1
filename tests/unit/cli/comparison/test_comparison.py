from collections.abc import Callable

import pytest
from tests.kit.runs.compared import SPEC

from oku_cli.comparison.comparison import Verdict, compare_runs
from oku_cli.comparison.run_seconds import RunSeconds
from oku_core.statistics.change import ChangeVerdict


@pytest.mark.parametrize(
    ("median_us", "verdict"),
    [(20_000, Verdict.NO_DIFFERENCE), (24_000, Verdict.SLOWER), (16_000, Verdict.FASTER)],
)
def test_a_run_is_judged_by_another(
    make_run: Callable[..., RunSeconds], median_us: float, verdict: Verdict
) -> None:
    """Every quantile has a verdict, but those of too few requests."""
    comparison = compare_runs(make_run(1), make_run(2, median_us=median_us), mask=dict)
    assert comparison.verdict is verdict
    assert comparison.fails_as_slower() is (verdict is Verdict.SLOWER)
    assert comparison.reasons == []
    assert [each.quantile for each in comparison.quantiles] == ["p50", "p90", "p95", "p99", "p99_9"]
    p50, p99_9 = comparison.quantiles[0], comparison.quantiles[-1]
    assert p50.change is not None
    assert p50.change.verdict.value == verdict.value
    assert p99_9.change is None
    assert p99_9.plain_change is not None
    assert len(comparison.list_quantiles(ChangeVerdict.NO_DIFFERENCE)) == (4 if median_us == 20_000 else 0)


def test_runs_that_cannot_be_judged_are_shown_all_the_same(make_run: Callable[..., RunSeconds]) -> None:
    """With intervals, where there are any, without a verdict, and the same each time."""
    assert compare_runs(make_run(1), make_run(2), mask=dict) == compare_runs(
        make_run(1), make_run(2), mask=dict
    )
    other = make_run(2, spec={**SPEC, "method": "PUT"})
    comparison = compare_runs(make_run(1), other, mask=dict)
    assert comparison.verdict is Verdict.NOT_COMPARABLE
    assert not comparison.is_judged
    assert comparison.fails_as_slower()
    assert not comparison.fails_as_slower(allows_undecided=True)
    assert all(each.change is None for each in comparison.quantiles)
    assert comparison.quantiles[0].b_interval_ms is not None
    assert compare_runs(make_run(1), other, mask=dict, despite=["method"]).is_judged

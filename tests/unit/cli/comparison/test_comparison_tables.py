from collections.abc import Callable

import msgspec
import pytest
from tests.kit.runs.compared import SPEC, MakeRun
from tests.kit.runs.summaries import list_texts, make_outcomes

from oku_cli.comparison.comparison import ComparedQuantile, Comparison, Verdict, compare_runs
from oku_cli.comparison.comparison_tables import (
    build_accounts,
    build_differences,
    describe_comparison,
    list_quantile_tables,
)
from oku_core.statistics.change import ChangeVerdict, QuantileChange
from oku_core.summary.judgement import Judgement
from oku_core.summary.summary import Summary


def test_both_accounts_stand_side_by_side(make_run: MakeRun) -> None:
    """With the change of the rate."""
    second = make_run(2, outcomes=make_outcomes(ok=5990, timeout=10))
    heads, accounted, _, timeout, throughput = list_texts(
        build_accounts(compare_runs(make_run(1), second, mask=dict))
    )
    assert heads == ["", "A", "share", "B", "share", "change"]
    assert accounted == ["accounted", "6,000", "", "6,000", "", ""]
    assert timeout == ["timeout", "0", "0 %", "10", "0.17 %", ""]
    assert (throughput[0], throughput[-1]) == ("throughput", "0 %")


def test_each_quantile_has_its_intervals_and_its_verdict(make_run: MakeRun) -> None:
    """The note says what would have been seen: absence of evidence is no evidence of absence."""
    [table] = list_quantile_tables(compare_runs(make_run(1), make_run(2, median_us=30_000), mask=dict))
    rows = {row.cells[0].text: row.cells for row in table.rows}
    assert [cell.text for cell in rows["p50"]][-1] == "slower"
    assert rows["p50"][-1].judgement is Judgement.BAD
    assert rows["p50"][5].value is not None
    assert [cell.text for cell in rows["p99.9"]][-1] == "too few"
    assert table.note == ""
    [same] = list_quantile_tables(compare_runs(make_run(1), make_run(2), mask=dict))
    assert any(row.cells[-1].text.startswith("none (") for row in same.rows)
    assert "one of x % would have been seen" in same.note


def test_values_that_look_alike_are_told_apart(make_run: MakeRun) -> None:
    """Masks hide what differs."""
    second = make_run(2, spec={**SPEC, "body": "secret"})
    first = make_run(1, spec={**SPEC, "body": "other"})
    comparison = compare_runs(first, second, mask=lambda spec: {**spec, "body": "***"})
    assert list_texts(build_differences(comparison)) == [
        ["what differs", "A", "B"],
        ["body", "***", "*** (not the same)"],
    ]


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
    assert describe_comparison(msgspec.structs.replace(comparison, verdict=verdict)) == sentence

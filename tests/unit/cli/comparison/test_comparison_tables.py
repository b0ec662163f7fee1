from tests.kit.runs.compared import SPEC, MakeRun
from tests.kit.runs.summaries import list_texts, make_outcomes

from oku_cli.comparison.comparison import compare_runs
from oku_cli.comparison.comparison_tables import build_accounts, build_differences, list_quantile_tables
from oku_core.results.judgement import Judgement


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

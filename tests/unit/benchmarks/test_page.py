from pathlib import Path

import pytest

from oku_benchmarks.page import PAGE, update_page
from oku_benchmarks.questions import BENCHMARKS, QUESTIONS, find_benchmarks, list_questions
from oku_benchmarks.report import Goal, Report, Table, build_ratios

REPORT = Report(
    tables=[Table(("a", "b"), [("1", "2")])], goals=[Goal("fast", "no", is_met=False)], notes=["A note."]
)


def test_a_report_replaces_what_is_between_its_markers() -> None:
    """Everything else on the page stays."""
    page = "# Page\n\n<!-- bench cost:begin -->\nold\n<!-- bench cost:end -->\n\nText.\n"
    assert update_page(page, "cost", REPORT, "Measured now.") == (
        "# Page\n\n<!-- bench cost:begin -->\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nA note.\n\n"
        "| goal | result | met |\n| --- | --- | --- |\n| fast | no | **no** |\n\nMeasured now.\n"
        "<!-- bench cost:end -->\n\nText.\n"
    )


def test_a_page_without_the_markers_is_not_written() -> None:
    """A table does not get lost."""
    with pytest.raises(ValueError, match="unpack"):
        update_page("# Page\n", "cost", REPORT, "")


def test_every_benchmark_has_its_place_on_the_page() -> None:
    """And its line in the list, and a name that no other one and no question has."""
    page, listed = (Path(__file__).parents[3] / PAGE).read_text(), list_questions()
    assert sum(len(benchmarks) for _, benchmarks in QUESTIONS.values()) == len(BENCHMARKS)
    assert not set(BENCHMARKS) & set(QUESTIONS)
    for name, benchmark in BENCHMARKS.items():
        assert f"<!-- bench {name}:begin -->" in page
        assert f"<!-- bench {name}:end -->" in page
        assert f"  {name:<12} {benchmark.summary}" in listed
        assert "\n" not in benchmark.summary


def test_a_question_is_answered_by_its_benchmarks_but_for_the_long_ones() -> None:
    """Those are measured when they are named."""
    assert find_benchmarks("ledger") == ["requests", "parts", "days"]
    assert find_benchmarks("workers") == ["workers"]
    assert find_benchmarks("nothing") == []


def test_only_exact_goals_fail_a_benchmark() -> None:
    """A slow machine misses the others."""
    missed = Goal("each request once", "9 of 10", is_met=False, is_exact=True)
    report = Report(
        tables=[], goals=[REPORT.goals[0]], judged=[missed, Goal("fine", "", is_met=True, is_exact=True)]
    )
    assert report.misses == [missed]


def test_ratios_are_taken_round_by_round() -> None:
    """What changes from round to round changes both."""
    assert build_ratios([10, 30, 20], [5, 10, 20]).format(".1f") == "2.0 (1.0–3.0)"  # noqa: RUF001  # typography
    assert build_ratios([2, 2], [1, 1]).format(".1f") == "2.0"

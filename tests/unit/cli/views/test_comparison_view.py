import pytest
from tests.kit.runs.compared import SPEC, MakeRun
from tests.kit.runs.summaries import make_outcomes
from tests.unit.cli.conftest import Render

from oku_cli.comparison.comparison import compare_runs
from oku_cli.report.comparison_page import build_comparison_page
from oku_cli.views.comparison_view import build_comparison
from oku_core.summary.summary import Unit


def test_two_runs_stand_side_by_side(make_run: MakeRun, render: Render) -> None:
    """The verdict stands above what it is made of."""
    lines = render(build_comparison(compare_runs(make_run(1), make_run(2, median_us=30_000), mask=dict)))
    text = "\n".join(lines)
    assert lines[1].startswith(" A r1  2026-02-01 17:05  completed")
    assert " B is slower than A: p50, p90, p95 and p99 of latency" in map(str.rstrip, lines)
    assert "accounted   6,000         6,000" in text
    (p50,) = (line for line in lines if line.startswith("   p50"))
    assert p50.count("ms") == 4
    assert p50.rstrip().endswith("slower")
    assert "none (" not in text
    (p99_9,) = (line for line in lines if line.startswith("   p99.9"))
    assert p99_9.rstrip().endswith("too few")
    # What would have been seen is explained. Only where no difference is shown.
    text = "\n".join(render(build_comparison(compare_runs(make_run(1), make_run(2), mask=dict))))
    assert "no difference shown (would have seen " in text
    assert "none (x %): no difference shown; one of x % would have been seen" in text


def test_runs_that_are_not_judged_say_why(make_run: MakeRun, render: Render) -> None:
    """With their figures, what differs in their specs, and what failed."""
    second = make_run(2, spec={**SPEC, "body": "{}"}, outcomes=make_outcomes(ok=5990, timeout=10))
    lines = [line.rstrip() for line in render(build_comparison(compare_runs(make_run(1), second, mask=dict)))]
    assert " A and B are not judged by each other" in lines
    assert "   their specs differ in body; to judge them all the same: --despite body" in lines
    assert any(line.split() == ["timeout", "0", "0", "%", "10", "0.17", "%"] for line in lines)
    assert ["body", "-", "{}"] in [line.split() for line in lines]
    assert not any("slower" in line or "none (" in line for line in lines)


@pytest.mark.parametrize("width", [40, 60, 120])
def test_no_number_is_cut_at_any_width(make_run: MakeRun, render: Render, width: int) -> None:
    """Narrow terminals get lines in place of columns."""
    comparison = compare_runs(make_run(1), make_run(2), mask=dict)
    text = "\n".join(render(build_comparison(comparison), width))
    assert "…" not in text
    assert text.count(" ms") >= 10


def test_runs_of_user_code_are_compared_by_iterations(make_run: MakeRun, render: Render) -> None:
    """A file of theirs is told by the begin of its digest."""
    code = {"engine": "python", "scenario": f"a.py@sha256:{'0' * 64}:1:a.py", "requests": 6000}
    other = {**code, "scenario": f"a.py@sha256:{'1' * 64}:1:a.py"}
    runs = [make_run(1, spec=code, unit=Unit.ITERATION), make_run(2, spec=other, unit=Unit.ITERATION)]
    comparison = compare_runs(*runs, mask=dict)
    lines = [line.strip() for line in render(build_comparison(comparison), width=100)]
    assert ["accounted", "iterations", "6,000", "6,000"] in [line.split() for line in lines]
    shown = [f"a.py@sha256:{digit * 12}…:1:a.py" for digit in "01"]
    assert ["scenario", *shown] in [line.split() for line in lines]
    assert "accounted iterations" in build_comparison_page(comparison)

from tests.kit.runs.compared import SPEC, MakeRun
from tests.unit.cli.report.conftest import Page

from oku_cli.comparison.comparison import compare_runs
from oku_cli.report.comparison_page import build_comparison_page
from oku_core.summary.validity import Flag, Validity


def test_the_page_shows_verdict_figures_curves_and_specs(make_run: MakeRun) -> None:
    """It is a whole document, and its two curves have the colours of its legend."""
    other = make_run(2, median_us=30_000, spec={**SPEC, "workers": 3})
    markup = build_comparison_page(compare_runs(make_run(1), other, mask=dict))
    page = Page(markup)
    assert page.faults == []
    assert "B is slower than A: p50, p90, p95 and p99 of latency" in page.text
    assert "what differsABworkers-3" in page.text
    lines = [path["class"] for path in page.find("path") if "line" in (path["class"] or "")]
    assert lines == ["line A", "line B"]
    assert "http" not in "".join(each.get("src") or "" for each in page.find("script"))
    assert markup.count("moving-block bootstrap") == 1


def test_the_page_says_why_runs_are_not_judged(make_run: MakeRun) -> None:
    """And has the flags of both."""
    flag = Validity(flag=Flag.WORKER_SATURATED, detail="workers were busy", requests=5, share=0.1)
    page = Page(build_comparison_page(compare_runs(make_run(1), make_run(2, validity=[flag]), mask=dict)))
    assert page.faults == []
    assert "B has the flag worker_saturated: workers were busy" in page.text
    assert "Flags of B" in page.text
    assert "Their specs are the same." in page.text

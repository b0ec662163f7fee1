from collections.abc import Callable

from tests.unit.cli.conftest import make_outcomes
from tests.unit.cli.report.conftest import Page

from oku_cli.report.markup import Html
from oku_cli.report.worker_table import MOST_WORKERS, build_workers
from oku_core.results.summary import ProcessSummary, Summary, WorkerSummary

MakeSummary = Callable[..., Summary]


def make_workers(count: int, lost: int = 0) -> list[WorkerSummary]:
    """Make `count` workers, the first `lost` lost."""
    return [
        WorkerSummary(name=f"w{n}", requests=n, cpu_s=1.0, peak_rss_mb=50.0, lost=n < lost)
        for n in range(count)
    ]


def build(summary: Summary) -> Page:
    """Build the section on workers, which must not be None."""
    section = build_workers(summary)
    assert isinstance(section, Html)
    page = Page(section)
    assert page.faults == []
    return page


def test_few_workers_have_a_row_each(make_summary: MakeSummary) -> None:
    """A row has the rate, the CPU time and the memory of a worker, and says if it was lost."""
    page = build(make_summary(workers=make_workers(3, lost=1)))
    assert "3 workers, 1 lost." in page.text
    assert "w0lost" in page.text
    assert len(page.find("tr")) == 4
    assert page.find("details") == []


def test_a_worker_has_no_rate_where_requests_were_not_sent(make_summary: MakeSummary) -> None:
    """What a worker accounted for is not what it sent."""
    workers = make_workers(2)
    assert "0.1/s" in build(make_summary(workers=workers)).text
    outcomes = make_outcomes(ok=600, not_sent=400)
    assert "/s" not in build(make_summary(workers=workers, outcomes=outcomes)).text


def test_more_workers_are_folded_under_their_spread(make_summary: MakeSummary) -> None:
    """The spread shows minimum, median and maximum of each column by itself."""
    page = build(make_summary(workers=make_workers(MOST_WORKERS)))
    assert len(page.find("details")) == 1
    assert f"max{MOST_WORKERS - 1}" in page.text
    assert len(page.find("tr")) == 1 + 3 + 1 + MOST_WORKERS


def test_of_very_many_workers_only_lost_ones_are_listed(make_summary: MakeSummary) -> None:
    """The page does not grow with their number."""
    page = build(make_summary(workers=make_workers(10_000, lost=2)))
    assert "lost workers" in page.text
    assert len(page.find("tr")) == 1 + 3 + 1 + 2
    assert build(make_summary(workers=make_workers(10_000))).find("details") == []


def test_other_processes_are_listed(make_summary: MakeSummary) -> None:
    """Each is named with its peak memory."""
    page = build(make_summary(processes=[ProcessSummary(name="broker", peak_mb=3.4)]))
    assert "broker 3 MB" in page.text


def test_a_run_without_workers_has_no_such_section(make_summary: MakeSummary) -> None:
    """It has not begun."""
    assert build_workers(make_summary(workers=[])) is None

from collections.abc import Callable

from tests.unit.cli.report.conftest import Page

from oku_cli.report.distribution_table import build_distribution_table, list_distributions
from oku_cli.report.run_history import RunHistory
from oku_core.accounting.histogram import Histogram
from oku_core.results.summary import Summary


def test_a_closed_run_has_one_distribution(make_summary: Callable[..., Summary]) -> None:
    """Without an answer it has none."""
    assert [each.name for each in list_distributions(make_summary())] == ["latency"]
    assert list_distributions(make_summary(Histogram())) == []


def test_a_run_with_a_rate_has_three(make_open_history: Callable[..., RunHistory]) -> None:
    """Their extremes are exact."""
    distributions = list_distributions(make_open_history().summary)
    assert [each.name for each in distributions] == ["latency", "response time", "lateness"]
    assert {(each.histogram.min_us, each.histogram.max_us) for each in distributions} == {(1000, 8999)}


def test_the_table_has_a_column_for_each(make_open_history: Callable[..., RunHistory]) -> None:
    """It says from when to when each is measured."""
    page = Page(build_distribution_table(make_open_history().summary))
    assert page.faults == []
    assert "latencysent to endresponse timedue to endlatenessdue to sent" in page.text
    assert "p99.9" + "8.99 ms" * 3 in page.text
    assert page.text.endswith("max" + "9.00 ms" * 3)

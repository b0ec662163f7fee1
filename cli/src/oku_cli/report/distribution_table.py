"""Builds the table of the three distributions of a run with a rate, and lists what there is to be charted."""

from collections.abc import Iterator

from oku_cli.report.charts.distribution import Distribution
from oku_cli.report.exports import decode_latency
from oku_cli.report.markup import Html, element
from oku_cli.views.distribution_view import decode_distribution
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import LatencySummary
from oku_core.tables.formatting import choose_digits, format_latency

_FIGURES = ("min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max")
_MEANINGS = (
    ("latency", "sent to end"),
    ("response time", "due to end"),
    ("lateness", "due to sent"),
)


def list_distributions(summary: Summary) -> list[Distribution]:
    """List the distributions of a run that are not empty, its latencies first."""
    return [distribution for distribution in _decode(summary) if distribution.histogram.total]


def build_distribution_table(summary: Summary) -> Html:
    """Build the table of minimum, mean, quantiles and maximum of all three."""
    columns = (summary.latency_ms, summary.response_time_ms, summary.lateness_ms)
    heads = [
        element("th", name, element("small", meaning), scope="col", class_=name.replace(" ", "-"))
        for name, meaning in _MEANINGS
    ]
    rows = [
        element(
            "tr",
            element("th", figure.replace("_", "."), scope="row"),
            *(element("td", _format(column, figure), class_="number") for column in columns),
        )
        for figure in _FIGURES
    ]
    table = element(
        "table",
        element("thead", element("tr", element("th", "", scope="col"), *heads)),
        element("tbody", *rows),
        class_="figures",
    )
    return element("div", element("h3", "Figures"), table)


def _decode(summary: Summary) -> Iterator[Distribution]:
    yield Distribution("latency", "answered requests", decode_latency(summary))
    response_time = decode_distribution(summary.response_time_histogram, summary.response_time_ms)
    yield Distribution("response time", "answered requests", response_time)
    lateness = decode_distribution(summary.lateness_histogram, summary.lateness_ms)
    yield Distribution("lateness", "requests that were sent and have ended", lateness)


def _format(column: LatencySummary, figure: str) -> str:
    return format_latency(getattr(column, figure), choose_digits((column.p50, column.p99)))

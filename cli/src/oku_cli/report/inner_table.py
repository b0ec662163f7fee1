"""Builds the table of the requests that user code has made within iterations, by name."""

from collections.abc import Sequence

from oku_cli.report.bars import build_bar
from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_cli.views.inner_view import INNER_NOTE, INNER_TITLE
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import InnerSummary, Summary
from oku_core.spec.values.quantity import format_bytes
from oku_core.tables.formatting import format_count, format_latency, format_outcome, format_rate

_QUANTILES = ("p50", "p95", "p99")
_NUMBERS = ("requests", "", "ok", "failed", *_QUANTILES, "rate", "bytes")


def build_inner_requests(summary: Summary) -> Html | None:
    """Build the section on requests by name; None if there are none."""
    requests = summary.inner_requests
    if not requests:
        return None
    parts = [element("p", INNER_NOTE, class_="note"), _build_table(requests)]
    if any(each.failures for each in requests):
        parts.append(_build_failures(requests))
    return build_section(INNER_TITLE, *parts, id_="inner-requests")


def _build_table(requests: Sequence[InnerSummary]) -> Html:
    most = max(each.requests for each in requests)
    heads = [element("th", "name", scope="col")]
    heads += [element("th", head, scope="col", class_="number" if head else "bar-cell") for head in _NUMBERS]
    table = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", *(_build_row(each, most) for each in requests)),
        class_="phase-rows target-rows",
    )
    return element("div", table, class_="scroll")


def _build_row(inner: InnerSummary, most: int) -> Html:
    counts = [(outcome, getattr(inner.outcomes, outcome)) for outcome in Outcome]
    bars = (build_bar(count, most, outcome) for outcome, count in counts if count)
    failed = inner.requests - inner.outcomes.ok
    statuses = ", ".join(f"{status}: {format_count(count)}" for status, count in inner.statuses.items())
    texts = (
        *(format_latency(getattr(inner.latency_ms, quantile)) for quantile in _QUANTILES),
        format_rate(inner.rate_rps),
        format_bytes(inner.bytes_received),
    )
    return element(
        "tr",
        element("th", inner.name, *([element("small", statuses)] if statuses else []), scope="row"),
        element("td", format_count(inner.requests), class_="number"),
        element("td", element("span", *bars, class_="stacked-bar"), class_="bar-cell"),
        element("td", format_count(inner.outcomes.ok), class_="number"),
        element("td", format_count(failed), class_="number bad" if failed else "number"),
        *(element("td", text, class_="number") for text in texts),
    )


def _build_failures(requests: Sequence[InnerSummary]) -> Html:
    heads = ("name", "outcome", "reason", "requests")
    rows = [
        element(
            "tr",
            element("td", each.name),
            element("td", format_outcome(failure.outcome)),
            element("td", failure.reason),
            element("td", format_count(failure.requests), class_="number"),
        )
        for each in requests
        for failure in each.failures
    ]
    columns = [
        element("th", head, scope="col", class_="number" if head == "requests" else None) for head in heads
    ]
    return element("table", element("thead", element("tr", *columns)), element("tbody", *rows))

"""Builds the page of a comparison: the verdict, the figures side by side, the curves and the specs."""

from collections.abc import Iterator, Sequence

from oku_cli.comparison.comparison import ComparedQuantile, Comparison, Verdict
from oku_cli.comparison.obstacles import SIDES
from oku_cli.comparison.spec_differences import describe_value
from oku_cli.comparison.wording import describe_change, describe_verdict
from oku_cli.report.charts.chart import build_section
from oku_cli.report.charts.distribution import Distribution
from oku_cli.report.charts.percentiles import build_percentile_chart
from oku_cli.report.document import ReadOut, build_document
from oku_cli.report.head import build_flags, format_utc
from oku_cli.report.markup import Html, element, join
from oku_cli.views.comparison_view import name_accounted
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import Summary
from oku_core.tables.formatting import (
    choose_digits,
    format_change,
    format_count,
    format_interval,
    format_latency,
    format_outcome,
    format_rate,
    format_share,
    in_units,
)
from oku_core.tables.time_tables import TIMES

_CLASSES = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
_NOTE = (
    "In brackets 95 % intervals, from a moving-block bootstrap over the seconds of each run. All verdicts "
    "together are wrong about two equal runs in at most 5 %. They say how figures vary within a run, not "
    "what changes from one start to the next: repeat what matters."
)


def build_comparison_page(comparison: Comparison) -> str:
    """Build the page."""
    read_out = ReadOut(comparison.a.unit)
    names = [_name(summary) for summary in (comparison.a, comparison.b)]
    parts = [_build_head(comparison), _build_account(comparison)]
    for name in dict.fromkeys(each.distribution for each in comparison.quantiles):
        rows = [each for each in comparison.quantiles if each.distribution == name]
        parts.append(_build_distribution(comparison, name, rows, read_out))
    parts.append(_build_specs(comparison))
    parts.append(element("footer", "Made by Oku from the ledger."))
    return build_document(f"{names[0]} and {names[1]} · Oku", parts, read_out)


def _name(summary: Summary) -> str:
    return summary.name or f"run {summary.run}"


def _build_head(comparison: Comparison) -> Html:
    class_ = f"state {_CLASSES.get(comparison.verdict, '')}".strip()
    return element(
        "header",
        element(
            "h1",
            " and ".join(map(_name, (comparison.a, comparison.b))),
            " ",
            element("span", comparison.verdict.replace("_", " "), class_=class_),
        ),
        *(
            element("p", element("strong", side), " · ", _describe_run(summary), class_="facts")
            for side, summary in zip(SIDES, (comparison.a, comparison.b), strict=True)
        ),
    )


def _describe_run(summary: Summary) -> str:
    facts = [f"run {summary.run}", summary.state, f"engine {summary.engine}", summary.load]
    if summary.started_at:
        facts.append(f"started {format_utc(summary.started_at)}")
    return " · ".join(filter(None, facts))


def _build_account(comparison: Comparison) -> Html:
    heads = ("", "A", "share", "B", "share", "change")
    table = _build_table(heads, list(_list_counts(comparison.a, comparison.b)))
    reasons = [element("li", reason) for reason in comparison.reasons]
    return build_section(
        "Account",
        element("p", describe_verdict(comparison), class_="extent"),
        *([element("ul", *reasons, class_="flags")] if reasons else []),
        table,
        *_list_flags(comparison),
        id_="account",
    )


def _list_flags(comparison: Comparison) -> Iterator[Html]:
    for side, summary in zip(SIDES, (comparison.a, comparison.b), strict=True):
        if summary.validity:
            yield join(element("h3", f"Flags of {side}"), build_flags(summary.validity, summary.unit))


def _list_counts(a: Summary, b: Summary) -> Iterator[list[str]]:
    yield [name_accounted(a), format_count(a.accounted), "", format_count(b.accounted), "", ""]
    for outcome in Outcome:
        counts = [getattr(each.outcomes, outcome) for each in (a, b)]
        if any(counts) or outcome is Outcome.OK:
            row = [format_outcome(outcome)]
            for count, each in zip(counts, (a, b), strict=True):
                row += [format_count(count), format_share(count, each.accounted)]
            yield [*row, ""]
    change = format_change(b.throughput_rps / a.throughput_rps - 1 if a.throughput_rps else None)
    yield ["throughput", format_rate(a.throughput_rps), "", format_rate(b.throughput_rps), "", change]


def _build_distribution(
    comparison: Comparison, name: str, rows: Sequence[ComparedQuantile], read_out: ReadOut
) -> Html:
    title = name.replace("_", " ")
    digits = choose_digits([row.a_ms for row in rows] + [row.b_ms for row in rows])
    unjudged = in_units("too few requests", comparison.a.unit) if comparison.is_judged else ""
    cells = [
        [
            row.quantile.replace("_", "."),
            *_list_values(row, digits),
            format_change(row.plain_change),
            _format_bounds(row),
            describe_change(row.change) if row.change else unjudged,
        ]
        for row in rows
    ]
    verdict = "verdict" if comparison.is_judged else ""
    table = _build_table(("", "A", "", "B", "", "change", "", verdict), cells)
    notes = [] if read_out.charts else [element("p", _NOTE, class_="note")]
    return build_section(
        f"{title[:1].upper()}{title[1:]}",
        *notes,
        element("div", table, class_="scroll"),
        *_build_curves(comparison, name, read_out),
        id_=name.replace("_", "-"),
    )


def _list_values(row: ComparedQuantile, digits: int) -> list[str]:
    cells = []
    for value_ms, interval_ms in ((row.a_ms, row.a_interval_ms), (row.b_ms, row.b_interval_ms)):
        interval = format_interval(interval_ms, digits)
        cells += [format_latency(value_ms, digits), f"({interval})" if interval else ""]
    return cells


def _format_bounds(row: ComparedQuantile) -> str:
    if row.change is None:
        return ""
    return f"({format_change(row.change.low)} to {format_change(row.change.high)})"


def _build_curves(comparison: Comparison, name: str, read_out: ReadOut) -> list[Html]:
    distributions = [
        Distribution(side, in_units("answered requests", summary.unit), histogram)
        for side, summary in zip(SIDES, (comparison.a, comparison.b), strict=True)
        if (histogram := _decode(summary, name)).total
    ]
    if len(distributions) < len(SIDES):
        return []
    id_ = f"{name.replace('_', '-')}-percentiles"
    chart, read_out.tracks[id_] = build_percentile_chart(distributions, id_=id_)
    return read_out.build_charts([chart])


def _decode(summary: Summary, name: str) -> HistogramSnapshot:
    return next(time.decode(summary) for time in TIMES if time.key == name)


def _build_specs(comparison: Comparison) -> Html:
    if not comparison.differences:
        return build_section("Spec", element("p", "Their specs are the same."), id_="spec")
    rows = []
    for each in comparison.differences:
        a, b = describe_value(each.a), describe_value(each.b)
        rows.append([each.key, a, b if a != b else f"{b} (not the same)"])
    return build_section("Spec", _build_table(("what differs", "A", "B"), rows, "spec-rows"), id_="spec")


def _build_table(heads: Sequence[str], rows: Sequence[Sequence[str]], class_: str = "compare-rows") -> Html:
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:]))
        for row in rows
    ]
    return element(
        "table",
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *body),
        class_=class_,
    )

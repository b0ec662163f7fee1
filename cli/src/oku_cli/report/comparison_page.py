"""Builds the page of a comparison: the verdict, the figures side by side, the curves and the specs."""

from collections.abc import Iterator

from oku_cli.comparison.comparison import Comparison, Verdict
from oku_cli.comparison.comparison_tables import (
    build_accounts,
    build_differences,
    describe_comparison,
    list_quantile_tables,
)
from oku_cli.comparison.obstacles import SIDES
from oku_cli.report.charts.chart import build_section
from oku_cli.report.charts.histogram_chart import ShownDistribution
from oku_cli.report.charts.percentiles import build_percentile_chart
from oku_cli.report.document import ReadOut, build_document
from oku_cli.report.markup import Html, build_html_table, build_note, element, join_html
from oku_cli.report.summary_sections import build_flags, format_utc
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.summary.summary import Summary
from oku_core.tables.formatting import in_units
from oku_core.tables.table import Table
from oku_core.tables.time_tables import TIMES

_CLASSES = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
_NOTE = (
    "Beside the figures stand 95 % intervals, from a moving-block bootstrap over the seconds of each run. "
    "All verdicts together are wrong about two equal runs in at most 5 %. They say how figures vary within a "
    "run, not what changes from one start to the next: repeat what matters."
)


def build_comparison_page(comparison: Comparison) -> str:
    """Build the page."""
    read_out = ReadOut(comparison.a.unit)
    names = [_name(summary) for summary in (comparison.a, comparison.b)]
    parts = [_build_head(comparison), _build_account(comparison)]
    parts += [_build_distribution(comparison, table, read_out) for table in list_quantile_tables(comparison)]
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
    facts = [f"run {summary.run}", summary.state, f"engine {summary.engine_choice}", summary.load]
    if summary.started_at:
        facts.append(f"started {format_utc(summary.started_at)}")
    return " · ".join(filter(None, facts))


def _build_account(comparison: Comparison) -> Html:
    reasons = [element("li", reason) for reason in comparison.reasons]
    return build_section(
        "Account",
        element("p", describe_comparison(comparison), class_="extent"),
        *([element("ul", *reasons, class_="flags")] if reasons else []),
        build_html_table(build_accounts(comparison), "compared"),
        *_list_flags(comparison),
        id_="account",
    )


def _list_flags(comparison: Comparison) -> Iterator[Html]:
    for side, summary in zip(SIDES, (comparison.a, comparison.b), strict=True):
        if summary.validity:
            yield join_html(element("h3", f"Flags of {side}"), build_flags(summary.validity, summary.unit))


def _build_distribution(comparison: Comparison, table: Table, read_out: ReadOut) -> Html:
    notes = [] if read_out.charts else list(build_note(_NOTE))
    return build_section(
        table.title.capitalize(),
        *notes,
        build_html_table(table, "compared"),
        *build_note(table.note),
        *_build_curves(comparison, table.name, read_out),
        id_=table.name.replace("_", "-"),
    )


def _build_curves(comparison: Comparison, name: str, read_out: ReadOut) -> list[Html]:
    distributions = [
        ShownDistribution(side, in_units("answered requests", summary.unit), histogram)
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
    return build_section("Spec", build_html_table(build_differences(comparison), "compared"), id_="spec")

"""Builds the table of targets: what came of the requests of each, in the whole run and in each phase."""

from collections.abc import Iterator, Sequence

from oku_cli.report.bars import build_bar
from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import PhaseSummary, Summary, TargetSummary
from oku_core.spec.load import WARM_UP
from oku_core.tables.formatting import (
    NOTHING,
    format_count,
    format_latency,
    format_outcome,
    format_rate,
    format_share,
)

_QUANTILES = ("p50", "p95", "p99")
_WARM_UP_NOTE = "Requests and outcomes include the warm-up; rates and times do not."


def build_targets(summary: Summary) -> Html | None:
    """Build the section on targets; None if the run names none."""
    if not summary.targets:
        return None
    parts = [_build_table(summary.targets)]
    if any(phase.name == WARM_UP for phase in summary.phases):
        parts.append(element("p", _WARM_UP_NOTE, class_="note"))
    parts += [_fold(phase) for phase in summary.phases if phase.targets]
    return build_section("Targets", *parts, id_="targets")


def _fold(phase: PhaseSummary) -> Html:
    return element("details", element("summary", f"Phase {phase.name}"), _build_table(phase.targets))


def _build_table(targets: Sequence[TargetSummary]) -> Html:
    has_due_times = any(target.lateness_ms.max is not None for target in targets)
    distributions = ["latency", *(["response time"] if has_due_times else [])]
    # A narrow page leaves the bars out.
    top = [
        element("th", "", colspan="2"),
        element("th", "", class_="bar-cell"),
        element("th", "", colspan="2"),
    ]
    top += [
        element("th", name, colspan=str(len(_QUANTILES)), scope="colgroup", class_="number")
        for name in distributions
    ]
    heads = [element("th", "target", scope="col")]
    heads += [
        element("th", head, scope="col", class_=class_)
        for head, class_ in (("requests", "number"), ("", "bar-cell"), ("rate", "number"), ("ok", "number"))
    ]
    quantiles = _QUANTILES * len(distributions)
    heads += [element("th", quantile, scope="col", class_="number") for quantile in quantiles]
    most = max(target.requests for target in targets)
    table = element(
        "table",
        element("thead", element("tr", *top), element("tr", *heads)),
        element("tbody", *(_build_row(target, most, has_due_times=has_due_times) for target in targets)),
        class_="phase-rows target-rows",
    )
    return element("div", table, class_="scroll")


def _build_row(target: TargetSummary, most: int, *, has_due_times: bool) -> Html:
    columns = [target.latency_ms, *([target.response_time_ms] if has_due_times else [])]
    share = format_share(target.outcomes.ok, target.requests) if target.requests else NOTHING
    return element(
        "tr",
        element("th", target.name, *_list_troubles(target), scope="row"),
        element("td", format_count(target.requests), class_="number"),
        element("td", _build_stacked_bar(target, most), class_="bar-cell"),
        element("td", format_rate(target.rate_rps), class_="number"),
        element("td", share, class_="number" if target.outcomes.ok == target.requests else "number bad"),
        *(
            element("td", format_latency(getattr(column, quantile)), class_="number")
            for column in columns
            for quantile in _QUANTILES
        ),
    )


def _build_stacked_bar(target: TargetSummary, most: int) -> Html:
    """A bar as long as the requests of the target are many, with each outcome in its colour."""
    bars = (build_bar(count, most, outcome) for outcome, count in _list_counts(target) if count)
    return element("span", *bars, class_="stacked-bar")


def _list_troubles(target: TargetSummary) -> Iterator[Html]:
    """What was not ok, under the name of the target."""
    counts = [(outcome, count) for outcome, count in _list_counts(target) if outcome is not Outcome.OK]
    if shown := [f"{format_count(count)} {format_outcome(outcome)}" for outcome, count in counts if count]:
        yield element("small", ", ".join(shown))


def _list_counts(target: TargetSummary) -> list[tuple[Outcome, int]]:
    return [(outcome, getattr(target.outcomes, outcome)) for outcome in Outcome]

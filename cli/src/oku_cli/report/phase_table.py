"""Builds the table of phases: what was planned for the warm-up and each stage, and what came of it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from oku_cli.report.charts.chart import build_section
from oku_cli.report.charts.scale import format_compact
from oku_cli.report.charts.timeline import format_since
from oku_cli.report.markup import Html, element, join
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import PhaseSummary, Summary
from oku_core.schedule.stage import Stage
from oku_core.spec.load import list_stages
from oku_core.spec.spec import Spec
from oku_core.tables.formatting import NOTHING, format_count, format_latency, format_outcome, format_rate

_QUANTILES = ("p50", "p99")


def build_phases(summary: Summary, load: Spec | None) -> Html | None:
    """Build the section on phases; None if the run has only one, without a name.

    Args:
        summary: of the run.
        load: a spec with its load; None if that is not known.
    """
    phases = summary.phases
    if not phases:
        return None
    has_due_times = any(phase.lateness_ms.max is not None for phase in phases)
    planned = _list_plans(phases, load)
    distributions = ["latency", *(("response time", "lateness") if has_due_times else ())]
    is_open = any(phase.due is not None for phase in phases)
    top = [element("th", "", colspan=str(5 + is_open + bool(planned)))]
    top += [element("th", name, colspan="2", scope="colgroup", class_="number") for name in distributions]
    heads = [element("th", head, scope="col") for head in ("phase", "time")]
    numbers = [
        *(["due"] if is_open else []),
        "completed",
        *(["planned/s" if is_open else "planned"] if planned else []),
        "sent/s",
        "completed/s",
        *(_QUANTILES * len(distributions)),
    ]
    heads += [element("th", head, scope="col", class_="number") for head in numbers]
    rows = [
        _build_row(
            phase,
            planned.get(phase.name, NOTHING) if planned else None,
            summary.active_s,
            is_open=is_open,
            has_due_times=has_due_times,
        )
        for phase in phases
    ]
    table = element(
        "table",
        element("thead", element("tr", *top), element("tr", *heads)),
        element("tbody", *rows),
        class_="phase-rows",
    )
    return build_section("Phases", element("div", table, class_="scroll"), id_="phases")


def _build_row(
    phase: PhaseSummary, planned: str | None, active_s: float, *, is_open: bool, has_due_times: bool
) -> Html:
    end = "the end" if phase.end_s is None else format_since(phase.end_s)
    columns = [phase.latency_ms, *((phase.response_time_ms, phase.lateness_ms) if has_due_times else ())]
    has_begun = active_s > phase.begin_s
    return element(
        "tr",
        element("th", phase.name, element("small", join(*_list_troubles(phase))), scope="row"),
        element("td", f"{format_since(phase.begin_s)} to {end}"),
        *([element("td", _format_due(phase), class_="number")] if is_open else []),
        element("td", format_count(phase.completed), class_="number"),
        *([element("td", planned, class_="number")] if planned is not None else []),
        *(
            element("td", format_rate(rate_rps) if has_begun else NOTHING, class_="number")
            for rate_rps in (phase.sent_rps, phase.completed_rps)
        ),
        *(
            element("td", format_latency(getattr(column, quantile)), class_="number")
            for column in columns
            for quantile in _QUANTILES
        ),
    )


def _format_due(phase: PhaseSummary) -> str:
    return NOTHING if phase.due is None else format_count(phase.due)


def _list_troubles(phase: PhaseSummary) -> Iterator[str]:
    """What was not ok in a phase."""
    counts = [(outcome, getattr(phase.outcomes, outcome)) for outcome in Outcome if outcome is not Outcome.OK]
    yield ", ".join(f"{format_count(count)} {format_outcome(outcome)}" for outcome, count in counts if count)


def _list_plans(phases: Sequence[PhaseSummary], load: Spec | None) -> dict[str, str]:
    """The mean rate, or the concurrency, that is planned for each phase; empty if nothing is."""
    rates = {phase.name: format_rate(phase.planned_rps) for phase in phases if phase.planned_rps is not None}
    if rates or load is None:
        return rates
    groups = groupby(list_stages(load), attrgetter("name"))
    return {name: _describe_concurrency(list(stages)) for name, stages in groups}


def _describe_concurrency(stages: Sequence[Stage]) -> str:
    levels = [stages[0].begin, *(stage.end for stage in stages)]
    ends = [level for level, _ in groupby(levels)]
    return f"{' to '.join(format_compact(float(level)) for level in ends)} in flight"

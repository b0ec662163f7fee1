"""Builds the tables of outcomes and of statuses: what became of the requests, and why some were not sent."""

from collections.abc import Iterator

from oku_cli.report.bars import BarRow, build_bars
from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_core.accounting.outcome import NOT_SENT_CAUSES, NotSentCause, Outcome
from oku_core.results.summary import Summary, Unit
from oku_core.spec.spec import Spec
from oku_core.tables.formatting import format_outcome, in_units

_OF_RATES = frozenset({Outcome.NOT_SENT, Outcome.LOST})
"""The outcomes of runs with a rate alone."""
_OF_UNITS = {
    Unit.REQUEST: frozenset(Outcome) - {Outcome.EXCEPTION},
    Unit.ITERATION: frozenset({Outcome.FAILED_CHECK, Outcome.TIMEOUT, Outcome.EXCEPTION, *_OF_RATES}),
}
"""What else than `ok` can become of requests and of iterations."""
_CAUSES = {
    NotSentCause.IN_FLIGHT_CAP: "in flight cap: as many requests as allowed were in flight when it was due",
    NotSentCause.LATE: "late: its worker was late for another reason",
    NotSentCause.NOT_DEALT: "not dealt: no worker had it",
}


def build_outcomes(summary: Summary, load: Spec | None = None) -> Html:
    """Build the tables of outcomes and of statuses, with the share of each.

    Args:
        summary: of the run.
        load: a spec with its load; None if that is not known.
    """
    statuses = [BarRow(status, count, "status") for status, count in sorted(summary.statuses.items())]
    return build_section(
        "Outcomes",
        element(
            "div",
            build_bars(
                in_units("Requests by outcome", summary.unit),
                ("outcome", in_units("requests", summary.unit)),
                list(_list_rows(summary)),
                summary.accounted,
                " ".join(_list_notes(summary, load)),
            ),
            *(
                [
                    build_bars(
                        "Responses by status",
                        ("status", "requests"),
                        statuses,
                        sum(summary.statuses.values()),
                    )
                ]
                if summary.unit is Unit.REQUEST
                else []
            ),
            class_="pair",
        ),
        id_="outcomes",
    )


def _list_rows(summary: Summary) -> Iterator[BarRow]:
    for outcome in Outcome:
        count = getattr(summary.outcomes, outcome)
        if count or outcome is Outcome.OK:
            yield BarRow(format_outcome(outcome), count, outcome)
        if outcome is Outcome.NOT_SENT:
            for cause in NOT_SENT_CAUSES:
                if part := getattr(summary.not_sent, cause):
                    yield BarRow(format_outcome(cause), part, outcome, is_part=True)


def _list_notes(summary: Summary, load: Spec | None) -> Iterator[str]:
    causes = [text for cause, text in _CAUSES.items() if getattr(summary.not_sent, cause)]
    if causes:
        yield in_units(f"{'; '.join(causes)}.", summary.unit)
    is_closed = load is not None and not load.is_open
    absent = [
        format_outcome(outcome)
        for outcome in Outcome
        if outcome is not Outcome.OK
        and outcome in _OF_UNITS[summary.unit]
        and not getattr(summary.outcomes, outcome)
        and not (is_closed and outcome in _OF_RATES)
    ]
    if absent:
        yield f"Did not occur: {', '.join(absent)}."

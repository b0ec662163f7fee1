"""Builds the tables of outcomes, of statuses, and of the reasons why requests failed."""

from collections.abc import Iterator, Sequence

from oku_core.accounting.outcome import NOT_SENT_CAUSES, NotSentCause, Outcome
from oku_core.spec.spec import Spec
from oku_core.summary.judgement import Judgement
from oku_core.summary.request_summary import InnerSummary, OutcomeCounts
from oku_core.summary.summary import Summary, Unit
from oku_core.tables.formatting import format_count, format_outcome, format_share, in_units
from oku_core.tables.table import (
    Cell,
    Column,
    Quantity,
    Rank,
    Role,
    Row,
    Table,
    Value,
    build_bar,
    build_row,
    build_table,
)

_OF_RATES = frozenset({Outcome.NOT_SENT, Outcome.LOST})
"""The outcomes of runs with a rate alone."""
_OF_UNITS = {
    Unit.REQUEST: frozenset(Outcome) - {Outcome.EXCEPTION},
    Unit.ITERATION: frozenset({Outcome.FAILED_CHECK, Outcome.TIMEOUT, Outcome.EXCEPTION, *_OF_RATES}),
}
"""Names of the outcomes other than `ok`, for requests and for iterations."""
_CAUSES = {
    NotSentCause.IN_FLIGHT_CAP: "in flight cap: as many requests as allowed were in flight when it was due",
    NotSentCause.LATE: "late: its worker was late for another reason",
    NotSentCause.NOT_DEALT: "not dealt: no worker had it",
}


def build_outcomes(summary: Summary, load: Spec | None = None) -> Table:
    """Build the table of the outcomes that occurred, and always `ok`; causes are parts of `not_sent`."""
    columns = _build_share_columns("outcome", in_units("requests", summary.unit))
    rows: list[Row] = []
    for outcome in Outcome:
        count = getattr(summary.outcomes, outcome)
        if count or outcome is Outcome.OK:
            rows.append(build_row(columns, _list_shares(outcome, count, summary.accounted, outcome)))
        if outcome is Outcome.NOT_SENT:
            causes = ((cause, getattr(summary.not_sent, cause)) for cause in NOT_SENT_CAUSES)
            rows += [
                build_row(columns, _list_shares(cause, part, summary.accounted, outcome), is_part=True)
                for cause, part in causes
                if part
            ]
    return Table(
        name="outcomes",
        title=in_units("Requests by outcome", summary.unit),
        columns=columns,
        rows=rows,
        note=" ".join(_list_notes(summary, load)),
    )


def build_statuses(summary: Summary) -> Table:
    """Build the table of the statuses of responses."""
    whole = sum(summary.statuses.values())
    columns = _build_share_columns("status", "requests")
    rows: Iterator[list[Value]] = (
        [status, count, count / whole, build_bar([("status", count)], whole)]
        for status, count in sorted(summary.statuses.items())
    )
    return build_table("statuses", "Responses by status", columns, rows)


def build_failures(summary: Summary) -> Table:
    """Build the table of why requests are not ok, the most frequent reasons first."""
    failures = summary.failures
    has_targets = any(failure.target for failure in failures)
    has_examples = any(failure.sample for failure in failures)
    columns = [
        *([Column(key="target", head="target", role=Role.NAME)] if has_targets else []),
        Column(key="outcome", head="outcome", role=Role.TEXT if has_targets else Role.NAME),
        Column(key="reason", head="reason", role=Role.TEXT),
        Column(key="requests", head=in_units("requests", summary.unit), quantity=Quantity.COUNT),
        Column(key="share", head="share", quantity=Quantity.SHARE, rank=Rank.SPARE),
        Column(key="first_index", head="first index", quantity=Quantity.INDEX),
        Column(key="last_index", head="last index", quantity=Quantity.INDEX, rank=Rank.USEFUL),
        *(
            [Column(key="example", head="request of the first", role=Role.TEXT, rank=Rank.DETAIL)]
            * has_examples
        ),
    ]
    rows: Iterator[list[Value]] = (
        [
            *([failure.target] if has_targets else []),
            Cell(text=format_outcome(failure.outcome), judgement=Judgement.BAD),
            failure.reason,
            failure.requests,
            failure.requests / summary.accounted if summary.accounted else None,
            failure.first_index,
            failure.last_index,
            *([failure.sample] if has_examples else []),
        ]
        for failure in failures
    )
    return build_table("failures", "Failures", columns, rows)


def build_name_failures(requests: Sequence[InnerSummary]) -> Table:
    """Build the table of why requests of user code failed, the most frequent reasons first."""
    columns = [
        Column(key="name", head="name", role=Role.NAME),
        Column(key="outcome", head="outcome", role=Role.TEXT),
        Column(key="reason", head="reason", role=Role.TEXT),
        Column(key="requests", head="requests", quantity=Quantity.COUNT),
    ]
    reasons = [(each.name, failure) for each in requests for failure in each.failures]
    reasons.sort(key=lambda reason: -reason[1].requests)
    rows: Iterator[list[Value]] = (
        [
            name,
            Cell(text=format_outcome(failure.outcome), judgement=Judgement.BAD),
            failure.reason,
            failure.requests,
        ]
        for name, failure in reasons
    )
    return build_table("name_failures", "", columns, rows)


def build_outcome_bar(outcomes: OutcomeCounts, whole: int) -> Cell:
    """Build a bar with a part for each outcome."""
    return build_bar([(outcome, getattr(outcomes, outcome)) for outcome in Outcome], whole)


def describe_troubles(outcomes: OutcomeCounts) -> str:
    """Describe the failures: `60 timeout, 40 not sent`; empty if there were none."""
    counts = ((outcome, getattr(outcomes, outcome)) for outcome in Outcome if outcome is not Outcome.OK)
    return ", ".join(f"{format_count(count)} {format_outcome(outcome)}" for outcome, count in counts if count)


def _build_share_columns(key: str, counted: str) -> list[Column]:
    return [
        Column(key=key, head=key, role=Role.NAME),
        Column(key="requests", head=counted, quantity=Quantity.COUNT),
        Column(key="share", head="share", quantity=Quantity.SHARE),
        Column(key="bar", head="", role=Role.BAR),
    ]


def _list_shares(name: Outcome | NotSentCause, count: int, whole: int, kind: Outcome) -> list[Value]:
    judgement = Judgement.NEUTRAL if kind is Outcome.OK else Judgement.BAD
    return [
        Cell(text=format_outcome(name), judgement=judgement),
        Cell(text=format_count(count), value=count, judgement=judgement),
        Cell(text=format_share(count, whole), value=count / whole if whole else 0.0, judgement=judgement),
        build_bar([(kind, count)], whole),
    ]


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

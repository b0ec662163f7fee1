from typing import Any

import pytest
from tests.kit.runs.summaries import build_summary, list_texts, make_inner, make_outcomes

from oku_core.accounting.outcome import Outcome
from oku_core.spec.parser import Source, parse_spec
from oku_core.summary.request_summary import FailureSummary, NotSentCounts
from oku_core.summary.summary import Unit
from oku_core.tables.outcome_tables import (
    build_failures,
    build_name_failures,
    build_outcomes,
    build_statuses,
)


def build_failure(**changes: Any) -> FailureSummary:
    """A reason of some requests."""
    given: dict[str, Any] = {"reason": "refused", "requests": 120, "first_index": 3, "last_index": 9000}
    return FailureSummary(outcome=Outcome.CONNECT_ERROR, **given | changes)


def test_only_the_outcomes_that_occurred_have_rows() -> None:
    """And `ok` in any case; the others are in a note."""
    table = build_outcomes(build_summary(outcomes=make_outcomes(connect_error=1000)))
    assert list_texts(table)[1:] == [["ok", "0", "0 %"], ["connect error", "1,000", "100 %"]]
    assert "Did not occur: unexpected status, timeout, disconnected, protocol error, not sent" in table.note
    assert [[part.kind for part in row.cells[-1].parts] for row in table.rows] == [[], ["connect_error"]]
    # Requests that were not sent have causes.
    summary = build_summary(
        outcomes=make_outcomes(ok=900, not_sent=100), not_sent=NotSentCounts(in_flight_cap=70, late=30)
    )
    table = build_outcomes(summary)
    assert list_texts(table)[2:] == [
        ["not sent", "100", "10.00 %"],
        ["in flight cap", "70", "7.00 %"],
        ["late", "30", "3.00 %"],
    ]
    assert [row.is_part for row in table.rows] == [False, False, True, True]
    assert "late: its worker was late for another reason." in table.note
    assert "not dealt" not in table.note


@pytest.mark.parametrize(
    ("load", "absent"),
    [({"requests": 1000}, ""), ({"rate": "100/s", "duration": 10}, "not sent, lost, ")],
)
def test_a_closed_run_does_not_speak_of_due_times(load: dict[str, object], absent: str) -> None:
    """None of its requests can be late, so it says nothing of those that were not sent or are lost."""
    spec = parse_spec(Source("spec", load | {"url": "http://h/"}))
    assert f"protocol error, {absent}failed check." in build_outcomes(build_summary(), spec).note


def test_iterations_have_outcomes_of_their_own() -> None:
    """A request raises no exception, and an iteration has no connection."""
    table = build_outcomes(
        build_summary(unit=Unit.ITERATION, outcomes=make_outcomes(ok=990, exception=10), statuses={})
    )
    assert list_texts(table)[0][1] == "iterations"
    assert list_texts(table)[2] == ["exception", "10", "1.00 %"]
    assert table.note == "Did not occur: timeout, not sent, lost, failed check."


def test_statuses_and_reasons_have_their_shares_and_indices() -> None:
    """Without responses there are none."""
    table = build_statuses(build_summary(statuses={"503": 1, "200": 999}))
    assert list_texts(table)[1:] == [["200", "999", "99.90 %"], ["503", "1", "0.10 %"]]
    assert build_statuses(build_summary(statuses={})).rows == []
    # A run that has not begun has no shares. Nothing is divided by zero.
    summary = build_summary(accounted=0, outcomes=make_outcomes(), failures=[build_failure()])
    assert list_texts(build_outcomes(summary))[1:] == [["ok", "0", "0 %"]]
    assert list_texts(build_failures(summary))[1][3] == "-"
    # A reason has its count and its first and last index.
    table = build_failures(build_summary(failures=[build_failure(), build_failure(first_index=None)]))
    assert list_texts(table) == [
        ["outcome", "reason", "requests", "share", "first index", "last index"],
        ["connect error", "refused", "120", "12.00 %", "3", "9000"],
        ["connect error", "refused", "120", "12.00 %", "-", "9000"],
    ]
    # Targets and examples have columns where they are known. The columns stay in their order.
    table = build_failures(build_summary(failures=[build_failure(target="buy", sample="GET http://h/")]))
    heads, row = list_texts(table)
    assert (heads[0], row[0]) == ("target", "buy")
    assert (heads[-1], row[-1]) == ("request of the first", "GET http://h/")
    # Reasons of all names are ordered by their counts. The most frequent comes first.
    names = [
        make_inner(name=name, failures=[build_failure(requests=count), build_failure(requests=count + 2)])
        for name, count in (("login", 1), ("buy", 2))
    ]
    assert [(row[0], row[-1]) for row in list_texts(build_name_failures(names))[1:]] == [
        ("buy", "4"), ("login", "3"), ("buy", "2"), ("login", "1"),
    ]  # fmt: skip

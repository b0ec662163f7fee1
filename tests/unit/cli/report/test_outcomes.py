from collections.abc import Callable

from tests.unit.cli.conftest import make_outcomes
from tests.unit.cli.report.conftest import Page

from oku_cli.report.load import read_load
from oku_cli.report.outcomes import build_outcomes
from oku_core.results.summary import NotSentCounts, Summary, Unit

MakeSummary = Callable[..., Summary]


def test_outcomes_that_did_not_occur_are_in_a_note(make_summary: MakeSummary) -> None:
    """Only `ok` has a row in any case; without responses there are no statuses."""
    text = Page(build_outcomes(make_summary(statuses={}, outcomes=make_outcomes(connect_error=1000)))).text
    assert "connect error1,000100 %" in text
    assert "ok00 %" in text
    assert "Did not occur: unexpected status, timeout, disconnected, protocol error, not sent, lost" in text
    assert "Responses by statusNone." in text


def test_requests_that_were_not_sent_have_causes(make_summary: MakeSummary) -> None:
    """Each cause is a row below the outcome, and a note says what it means."""
    summary = make_summary(
        outcomes=make_outcomes(ok=900, not_sent=100), not_sent=NotSentCounts(in_flight_cap=70, late=30)
    )
    text = Page(build_outcomes(summary)).text
    assert "not sent10010.00 %in flight cap707.00 %late303.00 %" in text
    assert "late: its worker was late for another reason." in text
    assert "not dealt" not in text


def test_a_closed_run_does_not_speak_of_due_times(make_summary: MakeSummary) -> None:
    """None of its requests can be late, so it says nothing of those that were not sent or are lost."""
    text = Page(build_outcomes(make_summary(), read_load({"requests": 1000}))).text
    assert "disconnected, protocol error, failed check." in text
    open_text = Page(build_outcomes(make_summary(), read_load({"rate": "100/s", "duration": 10}))).text
    assert "protocol error, not sent, lost, failed check." in open_text


def test_each_unit_has_outcomes_of_its_own(make_summary: MakeSummary) -> None:
    """A request raises no exception, and an iteration has no connection."""
    summary = make_summary(unit=Unit.ITERATION, outcomes=make_outcomes(ok=990, exception=10), statuses={})
    text = Page(build_outcomes(summary)).text
    assert "exception101.00 %" in text
    assert "Did not occur: timeout, not sent, lost, failed check." in text


def test_statuses_have_their_shares(make_summary: MakeSummary) -> None:
    """They are sorted."""
    text = Page(build_outcomes(make_summary(statuses={"503": 1, "200": 999}))).text
    assert "20099999.90 %50310.10 %" in text


def test_a_run_that_has_not_begun_has_no_outcomes(make_summary: MakeSummary) -> None:
    """Nothing is divided by zero."""
    summary = make_summary(accounted=0, outcomes=make_outcomes(), statuses={})
    assert Page(build_outcomes(summary)).faults == []

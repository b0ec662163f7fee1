from collections.abc import Callable

from tests.unit.cli.report.conftest import Page

from oku_cli.report.head import build_account, build_flags, build_head, build_outcomes
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.results.summary import Flag, OutcomeCounts, ServersSummary, Summary, Validity

MakeSummary = Callable[..., Summary]


def test_the_head_says_which_run(make_summary: MakeSummary) -> None:
    """It shows the name of the run, or its id if it has no name."""
    text = Page(build_head(make_summary())).text
    assert text == (
        "soak completedrun 6f2c1a · engine aiohttp · started 2026-02-01 17:05:12 UTC"
        " · ended 2026-02-01 17:05:22 UTC · active for 10.0 s"
    )
    assert Page(build_head(make_summary(name=""))).text.startswith("run 6f2c1a completed")


def test_a_run_that_failed_says_why(make_summary: MakeSummary) -> None:
    """The reason is shown as text, whatever it contains."""
    head = build_head(make_summary(state=RunState.FAILED, reason="<script>"))
    assert "<script>" in Page(head).text
    assert Page(head).find("script") == []


def test_the_account_comes_first(make_summary: MakeSummary) -> None:
    """It says how many of how many, whether that balances, and what the delay servers counted."""
    text = Page(build_account(make_summary())).text
    assert text.startswith("Account1,000 of 1,000 requests accountedaccountbalancesresent at most0")
    assert "delay servers counted1,000 = accounted" in text
    assert "p99.911.0 ms" in text


def test_the_account_says_how_many_requests_are_missing(make_summary: MakeSummary) -> None:
    """Depending on the state of the run, they are left or were not made."""
    paused = make_summary(state=RunState.PAUSED, accounted=999)
    assert "(99.9 %; 1 are left)" in Page(build_account(paused)).text
    cancelled = make_summary(state=RunState.CANCELLED, accounted=999)
    assert "(99.9 %; 1 were not made)" in Page(build_account(cancelled)).text
    running = make_summary(state=RunState.RUNNING, accounted=1, servers=ServersSummary(served=5))
    assert "balances so far" in Page(build_account(running)).text


def test_an_account_that_does_not_balance_says_so(make_summary: MakeSummary) -> None:
    """It says so in place of `balances`."""
    flag = Validity(flag=Flag.UNBALANCED, detail="1 is ok, the servers counted 0", requests=1)
    text = Page(build_account(make_summary(validity=[flag]))).text
    assert "does not balance: 1 is ok, the servers counted 0" in text


def test_every_flag_is_shown() -> None:
    """Each says how many requests it concerns; without any, a sentence says so."""
    flags = [Validity(flag=Flag.WORKER_LOST, detail="a worker died", requests=1)]
    assert Page(build_flags(flags)).text == "worker lost 1 request: a worker died"
    assert "No flags" in Page(build_flags([])).text


def test_a_run_without_answers_has_no_latencies(make_summary: MakeSummary) -> None:
    """It has no statuses either."""
    from oku_core.accounting.histogram import Histogram

    outcomes = OutcomeCounts(**dict.fromkeys(OUTCOMES, 0) | {"connect_error": 1000})
    summary = make_summary(Histogram(), statuses={}, outcomes=outcomes)
    assert "p50" not in Page(build_account(summary)).text
    text = Page(build_outcomes(summary)).text
    assert "connect error1,000100 %" in text
    assert "ok00 %" in text
    assert "Did not occur: unexpected status, timeout, disconnected, protocol error." in text


def test_statuses_have_their_shares(make_summary: MakeSummary) -> None:
    """They are sorted."""
    text = Page(build_outcomes(make_summary(statuses={"503": 1, "200": 999}))).text
    assert "20099999.90 %50310.10 %" in text


def test_a_run_that_has_not_begun_has_an_account(make_summary: MakeSummary) -> None:
    """Nothing is divided by zero."""
    summary = make_summary(
        state=RunState.PENDING, accounted=0, started_at=None, ended_at=None, active_s=0.0, throughput_rps=0.0,
        outcomes=OutcomeCounts(**dict.fromkeys(OUTCOMES, 0)), statuses={}, servers=None,
    )  # fmt: skip
    assert "0 of 1,000" in Page(build_account(summary)).text
    assert Page(build_outcomes(summary)).faults == []

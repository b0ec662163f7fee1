import msgspec
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.views.summary_markdown import build_markdown
from oku_core.accounting.outcome import Outcome
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import FailureSummary, NotSentCounts, PhaseSummary


def test_the_page_has_the_verdict_the_thresholds_the_figures_and_the_flags() -> None:
    """Each is one row of a table, or one line."""
    lines = build_markdown(build_threshold_run()).decode().splitlines()
    assert lines[0] == "## shop: failed"
    assert r"| ok \>= 99% | passed | 99.00 %; 1 of at most 1 against it |" in lines
    assert r"| p99 \< 1s | failed | 1.20 s; 2 of at most 1 against it |" in lines
    assert r"| rate \> 1/s over 1m | undecided | the run had no 60 s in a row that could be judged |" in lines
    assert "| ok | 99 | 99.00 % |" in lines
    assert "| timeout | 1 | 1.00 % |" in lines
    assert r"- resent: 3 requests: some \| more" in lines
    # The page says what failed and why.
    failures = [
        FailureSummary(
            target="buy|", outcome=Outcome.FAILED_CHECK, reason="check body", requests=12 - place,
            first_index=place, last_index=99, sample="",
        )
        for place in range(12)
    ]  # fmt: skip
    summary = msgspec.structs.replace(build_threshold_run(), failures=failures)
    lines = build_markdown(summary).decode().splitlines()
    assert "| target | outcome | reason | requests | share | first index | last index |" in lines
    assert r"| buy\| | failed check | check body | 12 | 12.00 % | 0 | 99 |" in lines
    assert sum("check body" in line for line in lines) == 10
    assert "and 2 more" in lines
    # The throughput is over the time after the warm up. As its rate is.
    phases = [
        PhaseSummary(
            name="warm-up", begin_s=0, end_s=0.5, requests=1, outcomes=build_threshold_run().outcomes,
            not_sent=NotSentCounts(), statuses={}, bytes_received=0, completed=1, sent_rps=1,
            completed_rps=1, latency_ms=LatencySummary(),
            response_time_ms=LatencySummary(), lateness_ms=LatencySummary(),
        )
    ]  # fmt: skip
    summary = msgspec.structs.replace(build_threshold_run(), phases=phases)
    assert "| throughput | 50/s over 1.5 s |" in build_markdown(summary).decode()


def test_names_of_others_stay_text() -> None:
    """They cannot begin a link, a tag or a row."""
    summary = msgspec.structs.replace(build_threshold_run(), name="[a](b)|<b>\n# x")
    assert build_markdown(summary).decode().splitlines()[0] == r"## \[a\](b)\|\<b\> \# x: failed"

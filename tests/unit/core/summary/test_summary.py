from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.histograms import make_histogram
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.run_state import RunState
from oku_core.summary.latency_summary import LatencySummary, build_latency_summary
from oku_core.summary.summary import find_imbalance


def test_figures_are_in_milliseconds() -> None:
    """A thousand latencies of 1 to 1000 µs have the figures that one expects."""
    assert build_latency_summary(make_histogram(list(range(1, 1001)))) == LatencySummary(
        min=0.001, mean=0.5005, p50=0.5, p90=0.9, p95=0.95, p99=0.99, p99_9=0.999, max=1.0
    )
    # Without an answer there are no figures.
    assert build_latency_summary(Histogram()) == LatencySummary()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=30))
def test_figures_rise_from_minimum_to_maximum(values_us: list[int]) -> None:
    """Minimum, maximum and mean are exact; quantiles lie between them in order."""
    summary = build_latency_summary(make_histogram(values_us))
    assert summary.min == min(values_us) / 1000
    assert summary.max == max(values_us) / 1000
    assert summary.mean == pytest.approx(sum(values_us) / len(values_us) / 1000, abs=1e-6)
    figures = [summary.min, summary.p50, summary.p90, summary.p95, summary.p99, summary.p99_9, summary.max]
    assert figures == sorted(figures, key=lambda figure: figure or 0)


def judge(
    *,
    state: RunState = RunState.COMPLETED,
    requests: int = 10,
    accounted: int = 10,
    outcomes: Sequence[int] = (7, 1, 2, 0, 0, 0, 0, 0),
    resent_at_most: int = 3,
    served: int | None = 9,
) -> str | None:
    """Find the imbalance of an account that balances unless it is changed."""
    return find_imbalance(
        state=state,
        requests=requests,
        accounted=accounted,
        outcomes=outcomes,
        resent_at_most=resent_at_most,
        served=served,
    )


def test_a_true_account_balances() -> None:
    """The servers saw at least what is ok, and at most what is accounted or may have been sent again."""
    cases: list[int | None] = [None, 7, 10, 13]
    for served in cases:
        assert judge(served=served) is None
    for state in [state for state in RunState if state != RunState.COMPLETED]:
        # A run that is not completed may be accounted in part.
        assert judge(state=state, requests=11) is None


def test_an_account_that_does_not_balance_is_named() -> None:
    """This holds whatever the state of the run and the servers' count."""
    for state in RunState:
        fault = judge(state=state, outcomes=(7, 1, 1, 0, 0, 0, 0, 0), served=None)
        assert fault == "the outcomes sum to 9, accounted are 10"
    for requests in [9, 11]:
        # A completed run is accounted in full. The account has neither fewer nor more requests than the run.
        assert judge(requests=requests, served=None) == f"completed with 10 of {requests} accounted"
    # More ok than served is named. No answer can come from nowhere.
    assert judge(served=6) == "7 are ok, the servers counted 6"
    # More served than sent is named. No request can be sent behind the ledger's back.
    assert judge(served=14) == "the servers counted 14, sent are 10 and resent at most 3"
    cases: list[tuple[int, str | None]] = [
        (7, None),
        (9, None),
        (10, "the servers counted 10, sent are 6 and resent at most 3"),
    ]
    for served, fault in cases:
        # What was not sent or is lost was served only if it may have been resent.
        assert judge(outcomes=make_counts(5, timeout=1, not_sent=3, lost=1), served=served) == fault

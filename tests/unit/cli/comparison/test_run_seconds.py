from collections.abc import Callable

from oku_cli.comparison.run_seconds import RunSeconds
from oku_core.accounting.run_state import RunState


def test_the_summary_of_a_run_gets_intervals(make_run: Callable[..., RunSeconds]) -> None:
    """Each is around the quantile of the account."""
    summary = make_run().build_intervals()
    assert summary.latency_interval_ms is not None
    for name in ("p50", "p90", "p95", "p99"):
        low, high = getattr(summary.latency_interval_ms, name)
        assert low < getattr(summary.latency_ms, name) < high
    assert summary.latency_interval_ms.p99_9 is None
    assert summary.response_time_interval_ms is None


def test_a_run_that_is_short_or_goes_on_has_none(make_run: Callable[..., RunSeconds]) -> None:
    """Its summary stays as it is."""
    for run in (make_run(seconds=20), make_run(state=RunState.RUNNING)):
        assert run.build_intervals() == run.summary

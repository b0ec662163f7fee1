"""The figures of how the time of requests is split."""

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.results.latency_summary import StepSummary, TimingSummary, build_timing_summary


def build_histogram(*values_us: int) -> Histogram:
    """The histogram of these values."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram


def build_account(**values_us: list[int]) -> Account:
    """An account with these times."""
    return Account(times={Time(name): build_histogram(*values) for name, values in values_us.items()})


def test_first_byte_and_transfer_are_of_all_answers_and_sum_to_their_latency() -> None:
    """The transfer of an answer in one piece is 0, and its first byte comes with the last one."""
    account = build_account(
        latency=[1000, 2000, 9000], split_latency=[9000], split_first_byte=[4000], transfer=[5000]
    )
    summary = build_timing_summary(account)
    assert (summary.first_byte.requests, summary.first_byte.mean, summary.first_byte.max) == (
        3,
        round(7 / 3, 6),
        4.0,
    )
    assert summary.first_byte.p50 == 2.0
    assert (summary.transfer.requests, summary.transfer.p50, summary.transfer.max) == (3, 0.0, 5.0)
    assert summary.transfer.mean == round(5 / 3, 6)


def test_connections_are_counted_by_the_requests_that_they_were_made_for() -> None:
    """Those without TLS have no handshake."""
    summary = build_timing_summary(build_account(connect=[200, 300, 400], tls=[900]))
    assert (summary.connect.requests, summary.connect.min, summary.connect.max) == (3, 0.2, 0.4)
    assert summary.tls == StepSummary(
        requests=1, min=0.9, mean=0.9, p50=0.9, p90=0.9, p95=0.9, p99=0.9, p99_9=0.9, max=0.9
    )


def test_without_requests_there_are_no_times() -> None:
    """Each step is there all the same, in the order of time."""
    summary = build_timing_summary(Account())
    assert summary == TimingSummary()
    assert [name for name, _ in summary.list_steps()] == ["connect", "tls", "first_byte", "transfer"]

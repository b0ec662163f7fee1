from collections.abc import Callable

import msgspec

from oku_cli.report.timing_table import build_timing
from oku_core.results.summary import NotSentCounts, OutcomeCounts, Summary, TargetSummary
from oku_core.results.timing_summary import LatencySummary, StepSummary, TimingSummary

MakeSummary = Callable[..., Summary]
TIMING = TimingSummary(
    connect=StepSummary(requests=20, min=0.1, mean=0.2, p50=0.2, p90=0.3, p99=0.4, max=0.5),
    first_byte=StepSummary(requests=1000, min=1.0, mean=2.0, p50=2.0, p90=3.0, p99=4.0, max=5.0),
    transfer=StepSummary(requests=1000, min=0.0, mean=0.5, p50=0.0, p90=1.0, p99=6.0, max=7.0),
)


def test_each_step_has_a_row(make_summary: MakeSummary) -> None:
    """One that no request has is left out."""
    table = str(build_timing(make_summary(timing_ms=TIMING)))
    assert all(text in table for text in ("connect", "first byte", "transfer", "400 µs", "6.00 ms"))
    assert "handshake" not in table
    assert "by target" not in table


def test_the_targets_are_folded(make_summary: MakeSummary) -> None:
    """They have a row each, with a column for each step."""
    none = LatencySummary()
    target = TargetSummary(
        name="item", weight=1, requests=1000, outcomes=OutcomeCounts(**COUNTS),
        not_sent=NotSentCounts(), statuses={}, bytes_received=0, rate_rps=1.0, latency_ms=none,
        response_time_ms=none, lateness_ms=none,
    )  # fmt: skip
    targets = [target, msgspec.structs.replace(target, name="buy", timing_ms=TIMING)]
    table = str(build_timing(make_summary(timing_ms=TIMING, targets=targets)))
    assert table.index("by target") < table.index("item") < table.index("buy")


COUNTS = {
    "ok": 1000, "unexpected_status": 0, "timeout": 0, "connect_error": 0, "disconnected": 0,
    "protocol_error": 0,
}  # fmt: skip


def test_a_run_that_has_not_connected_has_no_table(make_summary: MakeSummary) -> None:
    """There is nothing to show."""
    assert build_timing(make_summary()) is None

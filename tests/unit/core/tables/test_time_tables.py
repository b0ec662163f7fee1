from typing import Any

from tests.kit.runs.summaries import build_summary, list_texts, make_target

from oku_core.accounting.histogram import Histogram
from oku_core.summary.latency_summary import LatencySummary, StepSummary, TimingSummary
from oku_core.tables.time_tables import LATENCY, TIMES, build_steps, build_target_steps, build_times

TIMING = TimingSummary(
    connect=StepSummary(requests=20, min=0.1, mean=0.2, p50=0.2, p90=0.3, p99=0.4, max=0.5),
    transfer=StepSummary(requests=1000, min=0.0, mean=0.5, p50=0.0, p90=1.0, p99=6.0, max=7.0),
)


def test_each_time_of_a_run_has_a_column() -> None:
    """Its head says from when to when it is measured; a closed run has its latency alone."""
    given: dict[str, Any] = {f"{time.key}_ms": LatencySummary(p50=5.0, max=9.0) for time in TIMES}
    table = build_times(build_summary(**given))
    assert list_texts(table)[0] == ["", "latency", "response time", "lateness"]
    assert list_texts(table)[-1] == ["max", *["9.00 ms"] * 3]
    assert [column.detail for column in table.columns[1:]] == ["sent to end", "due to end", "due to sent"]
    assert list_texts(build_times(build_summary()))[0] == ["", "latency"]
    assert build_times(build_summary(Histogram())).rows == []
    # Quantiles that would look the same have one more digit.
    table = build_times(build_summary(latency_ms=LatencySummary(p50=5.001, p99=5.004, max=9.0)))
    texts = {row[0]: row[1] for row in list_texts(table)}
    assert (texts["p50"], texts["p99"], texts["max"]) == ("5.001 ms", "5.004 ms", "9.000 ms")
    # A distribution has its exact extremes. The exchange format lacks them.
    histogram = LATENCY.decode(build_summary())
    assert (histogram.total, histogram.min_us, histogram.max_us) == (1000, 1000, 10_990)
    assert TIMES[1].decode(build_summary()).total == 0
    assert LATENCY.decode(build_summary(Histogram())).total == 0


def test_each_step_that_some_request_has_is_a_row() -> None:
    """The transfer of most answers takes no time."""
    table = build_steps(build_summary(timing_ms=TIMING))
    assert list_texts(table)[1:] == [
        ["connect", "20", "100 µs", "200 µs", "200 µs", "300 µs", "400 µs", "500 µs"],
        ["transfer", "1,000", "0 ms", "500 µs", "0 ms", "1.00 ms", "6.00 ms", "7.00 ms"],
    ]
    assert build_steps(build_summary()).rows == []
    # Each target has the 99th percentile of each step. A step that it does not have has none.
    targets = [make_target(timing_ms=TIMING), make_target(name="buy")]
    assert list_texts(build_target_steps(targets)) == [
        ["target", "connect", "TLS", "first byte", "transfer"],
        ["item", "400 µs", "-", "-", "6.00 ms"],
        ["buy", "-", "-", "-", "-"],
    ]

"""The times that are measured of requests: each occurs as often as the outcomes say, and they add up."""

from typing import Literal

import pytest

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import DUE_TIMES, LIVE_TIMES, Time, find_time_fault
from oku_core.accounting.outcome import OUTCOMES, Outcome, build_no_counts


def build_times(**values_us: list[int]) -> dict[Time, Histogram]:
    """The distributions of these values."""
    times = {Time(name): Histogram() for name in values_us}
    for name, values in values_us.items():
        for value_us in values:
            times[Time(name)].record(value_us)
    return times


def count(**requests: int) -> list[int]:
    """Counts of outcomes."""
    outcomes = build_no_counts()
    for name, number in requests.items():
        outcomes[OUTCOMES.index(Outcome(name))] = number
    return outcomes


SPLIT = build_times(
    latency=[4000, 500], split_latency=[4000], split_first_byte=[1000], transfer=[3000],
    connect=[300, 300], tls=[900],
)  # fmt: skip


def test_true_times_agree() -> None:
    """Those of a closed run, of a run with a rate, and of requests of which nobody knows which it is."""
    due = SPLIT | build_times(response_time=[4100, 600], lateness=[100, 100, 50])
    outcomes = count(ok=2, timeout=1)
    for times, is_open in ((SPLIT, False), (SPLIT, None), (due, True), (due, None)):
        assert find_time_fault(times, outcomes, is_open=is_open) is None
    assert find_time_fault({}, build_no_counts(), is_open=True) is None


@pytest.mark.parametrize(
    ("changes", "is_open", "fault"),
    [
        ({"latency": [4000]}, None, "1 have a latency, but 2 must have one"),
        ({"latency": []}, None, "0 have a latency, but 2 must have one"),
        ({}, True, "0 have a response time, but 2 must have one"),
        ({"response_time": [1, 2]}, False, "2 have a response time, but 0 must have one"),
        ({"response_time": [1, 2]}, None, "0 have a lateness, but 2 must have one"),
        ({"lateness": [1, 2]}, None, "0 have a response time, but 2 must have one"),
        ({"response_time": [1, 2], "lateness": [1]}, True, "1 have a lateness, but 2 must have one"),
        ({"tls": [900] * 3}, None, "3 connections have agreed on TLS, but 2 were made"),
        ({"transfer": []}, None, "of 2 answers, 1 were split, but 1 have a first byte and 0 a transfer"),
        (
            {"split_first_byte": [1, 2]},
            None,
            "of 2 answers, 1 were split, but 2 have a first byte and 1 a transfer",
        ),
        (
            {"split_latency": [1] * 3, "split_first_byte": [1] * 3, "transfer": [0] * 3},
            None,
            "of 2 answers, 3 were split, but 3 have a first byte and 3 a transfer",
        ),
        (
            {"split_first_byte": [1001]},
            None,
            "split answers took 4000 µs, but their first bytes 1001 µs and their transfers 3000 µs",
        ),
    ],
)
def test_each_contradiction_is_named(
    changes: dict[str, list[int]], is_open: Literal[True, False] | None, fault: str
) -> None:
    """The log says which times do not agree."""
    assert find_time_fault(SPLIT | build_times(**changes), count(ok=2), is_open=is_open) == fault


def test_figures_of_a_time_are_named_after_it() -> None:
    """Those of a latency have no prefix, and a sentence has no underscores."""
    assert [time.figure_prefix for time in LIVE_TIMES] == ["", "response_time_", "lateness_"]
    assert [time.label for time in DUE_TIMES] == ["response time", "lateness"]

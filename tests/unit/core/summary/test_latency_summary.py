import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.histograms import make_histogram, make_latency

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import HIGHEST_US, HistogramSnapshot, merge
from oku_core.accounting.measured_time import Time
from oku_core.summary.latency_summary import (
    StepSummary,
    TimingSummary,
    build_first_byte,
    build_timing_summary,
    build_transfer,
)


def build_account(**values_us: list[int]) -> Account:
    """An account with these times."""
    return Account(times={Time(name): make_histogram(values) for name, values in values_us.items()})


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
    # Connections are counted by the requests that they were made for. Those without TLS have no handshake.
    summary = build_timing_summary(build_account(connect=[200, 300, 400], tls=[900]))
    assert (summary.connect.requests, summary.connect.min, summary.connect.max) == (3, 0.2, 0.4)
    assert summary.tls == StepSummary(
        requests=1, min=0.9, mean=0.9, p50=0.9, p90=0.9, p95=0.9, p99=0.9, p99_9=0.9, max=0.9
    )
    # Without requests there are no times. Each step is there all the same, in the order of time.
    summary = build_timing_summary(Account())
    assert summary == TimingSummary()
    assert [name for name, _ in summary.list_steps()] == ["connect", "tls", "first_byte", "transfer"]


Answer = tuple[int, int | None]
"""Its latency in µs and when its first byte came, or None if it came in one piece."""
ANSWERS = st.lists(
    st.tuples(st.integers(0, 5000) | st.integers(0, HIGHEST_US), st.none() | st.integers(0, HIGHEST_US)).map(
        lambda drawn: (drawn[0], None if drawn[1] is None else min(drawn[1], drawn[0]))
    ),
    max_size=20,
)


def build_timings(answers: list[Answer]) -> dict[Time, HistogramSnapshot]:
    """The distributions of these answers, each on a connection of its own, every other one with TLS."""
    split = [(latency_us, first_us) for latency_us, first_us in answers if first_us is not None]
    return {
        Time.CONNECT: make_latency([300] * len(answers)),
        Time.TLS: make_latency([900] * (len(answers) // 2)),
        Time.SPLIT_LATENCY: make_latency((latency_us for latency_us, _ in split)),
        Time.SPLIT_FIRST_BYTE: make_latency((first_us for _, first_us in split)),
        Time.TRANSFER: make_latency((latency_us - first_us for latency_us, first_us in split)),
    }


def build_first(answers: list[Answer]) -> HistogramSnapshot:
    """The first bytes of these answers, as they follow from the distributions."""
    timings = build_timings(answers)
    latency = make_latency((latency_us for latency_us, _ in answers))
    return build_first_byte(latency, timings[Time.SPLIT_LATENCY], timings[Time.SPLIT_FIRST_BYTE])


@given(ANSWERS)
def test_the_first_bytes_of_all_answers_follow_from_those_of_split_ones(answers: list[Answer]) -> None:
    """Buckets, count and sum are exact; the ends are as exact as a bucket, and never beyond the latencies."""
    first_byte = build_first(answers)
    times_us = [latency_us if first_us is None else first_us for latency_us, first_us in answers]
    exact = make_latency(times_us)
    assert (first_byte.buckets, first_byte.sum_us) == (exact.buckets, exact.sum_us)
    assert first_byte.find_fault() is None
    assert first_byte.min_us <= exact.min_us
    assert exact.max_us <= first_byte.max_us <= max((latency_us for latency_us, _ in answers), default=0)


def test_first_bytes_follow_from_split_answers() -> None:
    """The distribution is that of the latency."""
    assert build_first([(1000, None), (3000, None)]) == make_latency([1000, 3000])
    assert build_first([]) == HistogramSnapshot()
    # First bytes of split answers alone are exact. Nothing has to be told from them.
    assert build_first([(9000, 5001), (7000, 4003)]) == make_latency([5001, 4003])
    # Latencies of split answers must be among all. Else there is nothing to subtract from.
    with pytest.raises(ValueError, match="fewer than before"):
        build_first_byte(make_latency([1000]), make_latency([2000]), make_latency([100]))


@given(ANSWERS, ANSWERS, ANSWERS)
def test_the_first_bytes_of_parts_sum_to_those_of_the_whole(
    first: list[Answer], second: list[Answer], third: list[Answer]
) -> None:
    """It makes no difference whether parts are merged before or after, or which two of them at first."""
    whole = build_first([*first, *second, *third])
    left = merge([merge([build_first(first), build_first(second)]), build_first(third)])
    right = merge([build_first(first), merge([build_first(second), build_first(third)])])
    assert left == right
    assert (left.buckets, left.sum_us) == (whole.buckets, whole.sum_us)


@given(ANSWERS)
def test_transfers_of_all_answers_are_their_latencies_without_their_first_bytes(
    answers: list[Answer],
) -> None:
    """Each answer has one, and that of an answer in one piece is 0."""
    transfer = build_transfer(len(answers), build_timings(answers)[Time.TRANSFER])
    times_us = [0 if first_us is None else latency_us - first_us for latency_us, first_us in answers]
    assert transfer == make_latency(times_us)

import pytest

from oku_core.accounting.outcome import Outcome
from oku_core.spec.spec import OPEN_END
from oku_core.summary.summary import Unit
from oku_core.tables.formatting import (
    choose_digits,
    format_change,
    format_clock,
    format_count,
    format_date_minute,
    format_date_time,
    format_elapsed,
    format_interval,
    format_latency,
    format_left,
    format_outcome,
    format_progress,
    format_rate,
    format_requests,
    format_share,
    in_units,
)


def test_counts_have_separators_and_low_rates_a_decimal() -> None:
    """Commas separate the thousands."""
    assert format_count(100_000_000) == "100,000,000"
    for rate, shown in [(0, "0/s"), (0.4, "0.4/s"), (9.94, "9.9/s"), (9.96, "10/s"), (16_340.4, "16,340/s")]:
        # A low rate keeps a decimal. A rate below ten has one decimal, a larger one none.
        assert format_rate(rate) == shown


def test_shares_are_rounded_so_that_none_seems_whole() -> None:
    """All but one of a hundred million requests is not 100 %."""
    for done, whole, shown in [
        (0, 1000, "0.0 %"),
        (412_345, 1_000_000, "41.2 %"),
        (99_999_999, 100_000_000, "99.9 %"),
        (100_000_000, 100_000_000, "100.0 %"),
        (0, 0, "0.0 %"),
    ]:
        assert format_progress(done, whole) == shown
    for part, whole, shown in [
        (0, 1000, "0 %"),
        (1, 100_000_000, "< 0.01 %"),
        (123_456, 1_000_000, "12.35 %"),
        (99_999_999, 100_000_000, "> 99.99 %"),
        (1000, 1000, "100 %"),
        (0, 0, "0 %"),
    ]:
        # A share is all or nothing only if it is. Rounding never shows a part as 0 % or 100 %.
        assert format_share(part, whole) == shown


def test_a_latency_has_as_many_digits_as_it_needs() -> None:
    """The unit is µs below 1 ms and s from 1000 ms on, also where rounding crosses the limit."""
    cases: list[tuple[float | None, str]] = [
        (None, "-"), (0.0, "0.00 µs"), (0.0123, "12.3 µs"), (0.874, "874 µs"), (0.9996, "1.00 ms"),
        (1.7, "1.70 ms"), (9.996, "10.0 ms"), (99.96, "100 ms"), (999.4, "999 ms"), (999.6, "1.00 s"),
        (61_200.0, "61.2 s"), (3_600_000.0, "3,600 s"),
    ]  # fmt: skip
    for latency_ms, shown in cases:
        assert format_latency(latency_ms) == shown
    other_cases: list[tuple[list[float | None], int]] = [
        ([1001.0, 1004.0, None], 4),
        ([1.7, 6.0, 6.0], 3),
        ([], 3),
        ([None, None], 3),
    ]
    for latencies_ms, digits in other_cases:
        # A fourth digit is taken when three hide a difference.
        assert choose_digits(latencies_ms) == digits
    for latency_ms, shown in [(0.874, "874.0 µs"), (1001.0, "1.001 s"), (61_234.0, "61.23 s")]:
        # A latency has as many digits as wanted. Four digits are shown where three are too few.
        assert format_latency(latency_ms, digits=4) == shown


def test_times_are_no_finer_than_they_are_known_and_local() -> None:
    """Above 100 s it moves in steps of ten."""
    cases: list[tuple[float | None, str]] = [
        (None, "-"),
        (35.6, "36 s"),
        (99.6, "1 min 40 s"),
        (757, "12 min 40 s"),
        (1.3e9, "over 99 h"),
    ]
    for seconds, shown in cases:
        assert format_left(seconds) == shown
    for seconds, shown in [
        (0, "0 s"),
        (25.9, "25 s"),
        (99.9, "99 s"),
        (125.5, "2 min 05 s"),
        (11_400, "3 h 10 min"),
    ]:
        # Elapsed time is in whole seconds.
        assert format_elapsed(seconds) == shown
    # Times are local. A Unix time is shown as the local time of day, and with the date where that matters.
    assert format_clock(1_769_965_512.9) == "17:05:12"
    assert format_date_time(1_769_965_512.9) == "2026-02-01 17:05:12"
    assert format_date_minute(1_769_965_512.9) == "2026-02-01 17:05"
    # Outcomes are words. Spaces are easier to read than underscores.
    assert format_outcome(Outcome.CONNECT_ERROR) == "connect error"
    # A run that ends after a time has an open end. It is not known before how many requests it will have.
    assert format_requests(1_000_000) == "1,000,000"
    assert format_requests(OPEN_END) == "open-ended"


def test_a_change_has_a_sign_and_an_interval_its_unit_once() -> None:
    """Below ten percent it has a decimal."""
    cases: list[tuple[float | None, str]] = [
        (None, "-"),
        (0.0, "0 %"),
        (-0.0004, "0 %"),
        (0.123, "+12 %"),
        (-0.041, "-4.1 %"),
        (12.5, "+1,250 %"),
    ]
    for share, shown in cases:
        assert format_change(share) == shown
    # An interval names its unit once. Unless its ends have different ones.
    assert format_interval((19.81, 20.64)) == "19.8-20.6 ms"
    assert format_interval((0.985, 1.021)) == "985 µs-1.02 ms"
    assert format_interval(None) == ""


@pytest.mark.parametrize(
    ("text", "of_iterations"),
    [
        ("requests", "iterations"),
        ("1 request", "1 iteration"),
        ("Requests by outcome", "Iterations by outcome"),
        ("answered requests", "finished iterations"),
        ("place in the request space", "place in the request space"),
    ],
)
def test_a_text_about_requests_is_one_about_iterations_where_these_are_counted(
    text: str, of_iterations: str
) -> None:
    """Of a run that counts requests it stays what it is."""
    assert in_units(text, Unit.REQUEST) == text
    assert in_units(text, Unit.ITERATION) == of_iterations

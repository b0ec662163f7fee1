import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_cli.report.charts.scale import (
    Scale,
    build_linear_scale,
    build_log_scale,
    choose_step,
    format_axis_latency,
)
from oku_core.tables.formatting import format_compact


@given(st.floats(1e-6, 1e15))
def test_a_linear_scale_reaches_from_zero_to_a_round_number_above(high: float) -> None:
    """Its ticks are few and evenly spaced."""
    scale, numbers = build_linear_scale(high)
    assert scale.low == numbers[0] == 0
    assert math.isclose(scale.high, numbers[-1])
    assert high <= scale.high * (1 + 1e-6)
    assert 2 <= len(numbers) <= 6


@given(st.floats(0.001, 3.6e6), st.floats(1, 1e6))
def test_a_logarithmic_scale_encloses_what_it_shows(low: float, factor: float) -> None:
    """This holds for equal numbers, too, and it has at least two ticks."""
    high = min(low * factor, 3.6e6)
    scale, numbers = build_log_scale(low, max(low, high))
    assert scale.low <= low * (1 + 1e-6)
    assert max(low, high) <= scale.high * (1 + 1e-6)
    assert scale.low < scale.high
    assert 2 <= len(numbers) <= 12


def test_positions_go_from_0_to_1() -> None:
    """Numbers outside the scale are clamped to its ends."""
    plain, log = Scale(low=0, high=200), Scale(low=1, high=100, is_log=True)
    assert (plain.place(50), plain.place(-1), plain.place(300)) == (0.25, 0.0, 1.0)
    assert log.place(10) == pytest.approx(0.5)
    # Zeros have a scale. A chart of nothing but zeros can be drawn.
    scale, numbers = build_linear_scale(0)
    assert scale.high > 0
    assert len(numbers) >= 2


def test_steps_and_labels_are_round() -> None:
    """The smallest one that is large enough is chosen."""
    for least, step in [(0.9, 1), (1, 1), (1.1, 2), (2.5, 5), (6, 10), (0.03, 0.05)]:
        assert choose_step(least) == pytest.approx(step)
    # Labels of an axis are short. They have the unit that makes them shortest.
    written = [format_compact(number) for number in (0, 950, 12_000, 1_500_000, 2e9, 1e12)]
    assert written == ["0", "950", "12k", "1.5M", "2G", "1T"]
    assert [format_axis_latency(ms) for ms in (0, 0.2, 5, 2000)] == ["0", "200 µs", "5 ms", "2 s"]

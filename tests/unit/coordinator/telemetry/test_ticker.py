import pytest

from oku_coordinator.telemetry.ticker import find_pause_s


@pytest.mark.parametrize(
    ("now", "pause_s"), [(10.0, 1.0), (10.2, 0.8), (10.3, 1.7), (25.004, 0.996), (9.999, 1.001)]
)
def test_ticks_are_due_at_whole_seconds_and_never_close(now: float, pause_s: float) -> None:
    """A slightly late tick does not shift the next; after a very late one a second is left out."""
    assert find_pause_s(now) == pytest.approx(pause_s)

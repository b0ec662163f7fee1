import pytest

from oku_coordinator.telemetry.ticker import find_next_due


@pytest.mark.parametrize(
    ("due", "now", "next_due"),
    [
        (10.0, 10.0, 11.0),
        (10.0, 10.2, 11.0),
        (10.0, 10.3, 11.3),
        (10.0, 25.0, 26.0),
    ],
)
def test_ticks_are_a_second_apart_and_never_close(due: float, now: float, next_due: float) -> None:
    """A slightly late tick does not shift the next; a very late one is not followed at once."""
    assert find_next_due(due, now) == pytest.approx(next_due)

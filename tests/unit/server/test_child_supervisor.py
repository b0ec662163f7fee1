import pytest

from oku_server.child_supervisor import find_restart_pause_s


def test_a_child_that_lived_long_is_started_again_at_once() -> None:
    """A healthy life resets the pause, however long it had become."""
    assert find_restart_pause_s(5.0, 5.0) == find_restart_pause_s(0.0, 1000.0) == 0
    # A child that dies early waits longer each time.
    pauses = [0.0]
    for _ in range(8):
        pauses.append(find_restart_pause_s(pauses[-1], 0.3))
    assert pauses == pytest.approx([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])

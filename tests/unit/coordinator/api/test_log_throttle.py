import logging

import pytest

from oku_coordinator.api.authentication import EVERY_S, MOST_KINDS, LogThrottle


class Time:
    """A clock that the test moves on."""

    now_s = 0.0

    def clock(self) -> float:
        """Seconds."""
        return self.now_s


@pytest.fixture
def time() -> Time:
    """The clock stands at 0 s."""
    return Time()


@pytest.fixture
def throttle(time: Time) -> LogThrottle:
    """The throttle writes to the log `edge`."""
    return LogThrottle(logging.getLogger("edge"), time.clock)


def test_a_flood_that_goes_on_is_a_line_a_minute(
    throttle: LogThrottle, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    """The number of lines that come makes no difference."""
    for _ in range(6 * int(EVERY_S)):
        for _ in range(3):
            throttle.warn("malformed", "malformed")
        time.now_s += 0.5
        throttle.flush()
    assert len(caplog.messages) == 1 + 3


def test_an_error_of_our_own_has_its_traceback(
    throttle: LogThrottle, caplog: pytest.LogCaptureFixture
) -> None:
    """The traceback is logged once."""
    for _ in range(2):
        throttle.warn("failed", "it failed", RuntimeError("why"))
    assert caplog.text.count("RuntimeError: why") == 1


def test_kinds_that_callers_make_up_have_a_bound(throttle: LogThrottle, time: Time) -> None:
    """There is room for a known one, and for others again when its minute is over."""
    for number in range(MOST_KINDS):
        assert throttle.has_room_for(f"from {number}")
        throttle.warn(f"from {number}", "refused")
    assert throttle.has_room_for("from 0")
    assert not throttle.has_room_for("from elsewhere")
    time.now_s += EVERY_S
    throttle.flush()
    assert throttle.has_room_for("from elsewhere")

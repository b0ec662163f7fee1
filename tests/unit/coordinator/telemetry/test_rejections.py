import pytest

from oku_coordinator.telemetry.rejections import VersionSkew
from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.signing import PROTOCOL


class Clock:
    """Monotonic seconds that the test turns."""

    now = 1000.0

    def __call__(self) -> float:
        """As `time.monotonic`."""
        return self.now


def test_who_speaks_otherwise_is_named_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """It says so each second."""
    version_skew = VersionSkew(Clock())
    assert version_skew.describe() == ""
    for _ in range(10):
        version_skew.record(OtherProtocolError("w7", PROTOCOL + 1))
    assert version_skew.describe() == (
        f"workers of another version get no leases; this coordinator speaks protocol {PROTOCOL}:"
        f" w7 (protocol {PROTOCOL + 1});"
        " run the same version of Oku on all"
    )
    [record] = caplog.records
    assert record.getMessage() == (
        f"worker w7 speaks protocol {PROTOCOL + 1}, this coordinator {PROTOCOL}: it gets no leases"
    )


def test_one_that_has_gone_is_forgotten() -> None:
    """It is forgotten after a minute of silence."""
    clock = Clock()
    version_skew = VersionSkew(clock)
    version_skew.record(OtherProtocolError("w7", PROTOCOL + 1))
    clock.now += 61
    assert version_skew.describe() == ""


def test_many_are_some_and_a_number() -> None:
    """A notice is a line, and what is kept of such workers has a bound."""
    version_skew = VersionSkew(Clock())
    for number in range(1100):
        version_skew.record(OtherProtocolError(f"w{number:04}", 3))
    assert (
        "w0000 (protocol 3), w0001 (protocol 3), w0002 (protocol 3) and 997 more;" in version_skew.describe()
    )

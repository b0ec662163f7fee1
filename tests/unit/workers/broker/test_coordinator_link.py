import pytest

from oku_workers.broker.coordinator_link import CoordinatorLink


class Desk:
    """A link, its clock, and what it logs.

    Args:
        caplog: has the log.
    """

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.caplog, self.now = caplog, 1000.0
        self.caplog.set_level("INFO", "oku_workers.broker.coordinator_link")
        self.link = CoordinatorLink("redis://workers:hunter2@valkey:6379/0", lambda: self.now)

    def hear(self, *pauses_s: float) -> list[str]:
        """Hear the coordinator after each of these pauses; what is logged meanwhile."""
        self.caplog.clear()
        for pause_s in pauses_s:
            self.now += pause_s
            self.link.on_heard()
        return self.caplog.messages


def test_what_is_logged_of_the_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    """Once, with the broker in between and without its password; a connection to that alone is none."""
    desk = Desk(caplog)
    desk.link.on_connected()
    assert desk.caplog.messages == []
    assert desk.hear(0.0, 5.0, 5.0, 1.0) == ["connected to the coordinator through redis://***@valkey:6379/0"]
    # A link that was made stays.
    desk = Desk(caplog)
    assert not desk.link.is_made
    desk.hear(0.0)
    desk.now += 3600
    desk.link.on_connected()
    assert desk.link.is_made
    # A coordinator that was silent is logged once it is back.
    desk = Desk(caplog)
    desk.hear(0.0, *[15.0] * 5)
    assert desk.hear(19.0) == []
    assert desk.hear(20.0) == ["connected to the coordinator again after 20 s"]
    assert desk.caplog.records[0].__dict__["silent_s"] == 20.0
    assert desk.hear(5.0, 5.0, 70.0) == ["connected to the coordinator again after 70 s"]
    # A new connection to the broker is logged once the coordinator is heard.
    desk = Desk(caplog)
    desk.hear(0.0, 5.0)
    desk.link.on_connected()
    assert desk.hear(3.0, 5.0) == ["connected to the coordinator again after 3 s"]
    # A connection that breaks again and again does not fill the log.
    desk = Desk(caplog)
    desk.hear(0.0)
    said = []
    for silent_s in [2.0, 9.0, 4.0] * 20:
        desk.link.on_connected()
        said += desk.hear(silent_s)
    assert said == [f"connected to the coordinator again after {silent_s} s" for silent_s in (2, 9, 9, 9, 9)]
    assert desk.hear(*[5.0] * 20) == ["connected to the coordinator again after 9 s"]

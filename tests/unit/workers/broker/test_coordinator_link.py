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


@pytest.fixture
def desk(caplog: pytest.LogCaptureFixture) -> Desk:
    """A link to a coordinator that has not been heard."""
    return Desk(caplog)


def test_the_first_word_of_the_coordinator_is_logged(desk: Desk) -> None:
    """Once, with the broker in between and without its password; a connection to that alone is none."""
    desk.link.on_connected()
    assert desk.caplog.messages == []
    assert desk.hear(0.0, 5.0, 5.0, 1.0) == ["connected to the coordinator through redis://***@valkey:6379/0"]


def test_a_link_that_was_made_stays(desk: Desk) -> None:
    """A readiness probe hears the same while the broker is away, and afterwards."""
    assert not desk.link.is_made
    desk.hear(0.0)
    desk.now += 3600
    desk.link.on_connected()
    assert desk.link.is_made


def test_a_coordinator_that_was_silent_is_logged_once_it_is_back(desk: Desk) -> None:
    """It speaks every few seconds: a shorter silence is none."""
    desk.hear(0.0, *[15.0] * 5)
    assert desk.hear(19.0) == []
    assert desk.hear(20.0) == ["connected to the coordinator again after 20 s"]
    assert desk.caplog.records[0].__dict__["silent_s"] == 20.0
    assert desk.hear(5.0, 5.0, 70.0) == ["connected to the coordinator again after 70 s"]


def test_a_new_connection_to_the_broker_is_logged_once_the_coordinator_is_heard(desk: Desk) -> None:
    """However short the outage was: Celery has logged that it began."""
    desk.hear(0.0, 5.0)
    desk.link.on_connected()
    assert desk.hear(3.0, 5.0) == ["connected to the coordinator again after 3 s"]


def test_a_connection_that_breaks_again_and_again_does_not_fill_the_log(desk: Desk) -> None:
    """One line a minute, the last one included, says how long the longest silence was."""
    desk.hear(0.0)
    said = []
    for silent_s in [2.0, 9.0, 4.0] * 20:
        desk.link.on_connected()
        said += desk.hear(silent_s)
    assert said == [f"connected to the coordinator again after {silent_s} s" for silent_s in (2, 9, 9, 9, 9)]
    assert desk.hear(*[5.0] * 20) == ["connected to the coordinator again after 9 s"]

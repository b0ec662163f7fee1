import logging

import pytest

from oku_core.messaging.rejection import ForgedMessageError, MalformedMessageError, Rejection, RejectionLog


class Clock:
    """A monotonic clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """Stand in for `time.monotonic`."""
        return self.now


def test_a_flood_is_logged_as_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first message is logged at once, and each line tells how many came since the last one."""
    clock = Clock()
    log = RejectionLog(logging.getLogger("oku"), clock=clock)
    for _ in range(100_000):
        log.note(ForgedMessageError("a report is not signed"))
    clock.now += 60
    log.note(MalformedMessageError("Invalid JSON"))
    assert [record.getMessage() for record in caplog.records] == [
        "messages from the broker were dropped: 1, the last because a report is not signed",
        "messages from the broker were dropped: 100000, the last because Invalid JSON",
    ]


def test_each_message_is_counted_by_its_reason() -> None:
    """The counts feed a metric."""
    counted: list[Rejection] = []
    log = RejectionLog(logging.getLogger("oku"), counted.append)
    log.note(ForgedMessageError("x"))
    log.note(MalformedMessageError("y"))
    assert counted == [Rejection.FORGED, Rejection.MALFORMED]


def test_rejected_messages_are_described_for_a_minute() -> None:
    """The description tells how many there were, and why the last one was dropped."""
    clock = Clock()
    log = RejectionLog(logging.getLogger("oku"), clock=clock)
    assert log.describe() == ""
    log.note(ForgedMessageError("x"))
    log.note(ForgedMessageError("y"))
    clock.now += 60
    assert log.describe() == "messages from the broker were dropped: 2, the last because y"
    clock.now += 1
    assert log.describe() == ""


def test_what_was_dropped_and_where_it_came_from_are_in_the_line(caplog: pytest.LogCaptureFixture) -> None:
    """Messages of the broker have no address; datagrams have."""
    log = RejectionLog(logging.getLogger("oku"), what="questions for the clock")
    log.note(ForgedMessageError("a question is not signed"), "10.1.2.3")
    line = "questions for the clock were dropped: 1, the last from 10.1.2.3 because a question is not signed"
    assert caplog.messages == [line]
    assert log.describe() == line

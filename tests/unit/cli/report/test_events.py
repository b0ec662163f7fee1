from tests.unit.cli.report.conftest import START, Page, make_event

from oku_cli.report.charts.timeline import Timeline
from oku_cli.report.events import MOST_EVENTS, build_events, build_marks
from oku_core.results.event import EventType

TIMELINE = Timeline(((START, START + 100),))


def test_of_very_many_events_the_first_and_the_last_are_shown() -> None:
    """The page says how many it leaves out in between."""
    page = Page(build_events([make_event(n, text=f"event {n};") for n in range(10_000)], START))
    assert len(page.find("tr")) == MOST_EVENTS + 2
    assert "9,700 more" in page.text
    assert "event 0;" in page.text
    assert "event 9999;" in page.text


def test_events_are_a_table() -> None:
    """Each row has the time of day, the time since the start, and the text."""
    page = Page(build_events([make_event(75, EventType.WORKER_LOST, "worker <1> is dead")], START))
    assert page.faults == []
    assert "17:06:27" in page.text
    assert "1:15 min" in page.text
    assert "worker lost worker <1> is dead" in page.text
    # Another day is named. A run may be resumed days later.
    page = Page(build_events([make_event(0), make_event(86_400)], START))
    assert "17:05:120 s" in page.text
    assert "2026-02-02 17:05:12" in page.text
    # A run without events says so. An empty table would look like a fault.
    assert "No events were recorded." in Page(build_events([], None)).text


def test_important_events_are_marked_in_charts() -> None:
    """A worker that joins is not one of them."""
    events = [
        make_event(10),
        make_event(20, EventType.WORKER_JOINED),
        make_event(50, EventType.LEASE_EXPIRED),
    ]
    assert [(mark.at, mark.class_) for mark in build_marks(events, TIMELINE)] == [
        (0.1, "state"),
        (0.5, "lost"),
    ]
    # Events at the same position are one mark.
    events = [make_event(50), *(make_event(50, EventType.WORKER_LOST, f"w{n} is dead") for n in range(5))]
    (mark,) = build_marks(events, TIMELINE)
    assert mark.class_ == "lost"
    assert mark.text == "w0 is dead; w1 is dead; w2 is dead; and 3 more"

"""Shows the events of a run as a table, and as marks across the charts over time."""

from collections.abc import Sequence
from datetime import UTC, datetime

from oku_cli.report.charts.chart import Mark, build_section
from oku_cli.report.charts.timeline import Timeline
from oku_cli.report.markup import Html, element
from oku_core.results.event import Event, EventType
from oku_core.tables.formatting import format_count, format_since

MOST_EVENTS = 300
"""If there are more, the page shows the first and the last ones."""
_MARKED = {
    EventType.STATE: "state",
    EventType.COORDINATOR_STARTED: "trouble",
    EventType.TARGET_GONE: "lost",
    EventType.TARGET_BACK: "state",
    EventType.WORKER_LOST: "lost",
    EventType.LEASE_EXPIRED: "lost",
}
"""The events that charts mark, with the CSS class of their marks."""
_RANK = ("state", "trouble", "lost")
"""From harmless to bad: where marks coincide, the worst one is shown."""
_MARKS = 120
"""How many positions along the axis are distinguished; events at the same one share a mark."""
_MOST_TEXTS = 3


def build_marks(events: Sequence[Event], timeline: Timeline) -> list[Mark]:
    """Build one mark for each position at which something happened."""
    places: dict[int, list[Event]] = {}
    for event in events:
        if event.type in _MARKED:
            places.setdefault(round(timeline.place(event.at) * _MARKS), []).append(event)
    return [_merge(group, timeline) for _, group in sorted(places.items())]


def build_events(events: Sequence[Event], start: float | None) -> Html:
    """Build the table of events with the time of day and, if `start` is known, the time since then."""
    half = MOST_EVENTS // 2
    rows = [_build_row(event, start, events[0].at) for event in events]
    if len(rows) > MOST_EVENTS:
        left_out = f"{format_count(len(rows) - 2 * half)} more; oku report --json lists them all"
        gap = element("tr", element("td", left_out, colspan="3", class_="note"))
        rows = [*rows[:half], gap, *rows[-half:]]
    heads = [element("th", head, scope="col") for head in ("UTC", "elapsed", "event")]
    table = element(
        "table", element("thead", element("tr", *heads)), element("tbody", *rows), class_="events"
    )
    content = table if rows else element("p", "No events were recorded.", class_="note")
    return build_section("Events", content, id_="events")


def _build_row(event: Event, start: float | None, first: float) -> Html:
    at = datetime.fromtimestamp(event.at, UTC)
    day = "" if at.date() == datetime.fromtimestamp(first, UTC).date() else f"{at:%Y-%m-%d} "
    since = "" if start is None else format_since(max(0.0, event.at - start))
    class_ = _MARKED.get(event.type, "plain")
    return element(
        "tr",
        element("td", element("time", f"{day}{at:%H:%M:%S}", datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}")),
        element("td", since, class_="number"),
        element(
            "td", element("span", event.type.replace("_", " "), class_=f"kind {class_}"), " ", event.text
        ),
    )


def _merge(events: Sequence[Event], timeline: Timeline) -> Mark:
    class_ = max((_MARKED[event.type] for event in events), key=_RANK.index)
    worst = [event for event in events if _MARKED[event.type] == class_]
    text = "; ".join(event.text for event in worst[:_MOST_TEXTS])
    if len(events) > _MOST_TEXTS:
        text += f"; and {format_count(len(events) - _MOST_TEXTS)} more"
    return Mark(timeline.place(worst[0].at), class_, text)

"""Draws the request space: accounted, leased, pending, unused and reclaimed indices, over time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oku_cli.report.charts.chart import Axis, Chart, Key, draw_boxes
from oku_cli.report.charts.over_time import RunOverTime
from oku_cli.report.charts.scale import Scale, build_linear_scale, build_ticks
from oku_cli.report.charts.timeline import Timeline
from oku_cli.report.history_reader import Band, RunHistory
from oku_cli.report.markup import Html, element, join_html
from oku_core.accounting.interval import SliceState
from oku_core.accounting.lease_state import LeaseState
from oku_core.tables.formatting import format_compact, format_count, format_share

_FEW_LEASES = 150
"""Up to this many leases, a gap is drawn between them."""
_MANY_LEASES = 1500
"""Above this many leases, their corners are rounded to `_COARSE`."""
_LEAST_AGAIN = 0.25
"""The least height at which requests that were taken back are drawn, as a fraction of the strip."""
_FINE, _COARSE = 0.5, 2.0
"""The grid, in units of `BOX`, to which leases are rounded; very many of them look like a band anyway."""

_STATES = (SliceState.ACCOUNTED, SliceState.LEASED, SliceState.PENDING, SliceState.UNUSED)
"""From the bottom of a strip to its top."""


def build_strips(history: RunHistory) -> Html:
    """Draw the request space in equal parts, left to right: their states, and reclaimed indices."""
    parts = list(history.coverage.build_lines())
    sums = {state: sum(part[state] for part in parts) for state in _STATES}
    totals = ", ".join(f"{format_count(sums[state])} {state}" for state in _STATES if sums[state])
    strips = [_build_strip("state", f"The request space: {totals}.", parts, _draw_states)]
    if any(part["again"] for part in parts):
        note = "Requests that may have been sent more than once, by their place in the request space."
        strips.append(_build_strip("again", note, parts, _draw_again))
    return join_html(*strips)


def build_lease_chart(history: RunHistory, over_time: RunOverTime) -> Chart | None:
    """Build the chart of which part of the request space was leased when; None if there are no leases."""
    leases = history.leases
    if not leases:
        return None
    space = Scale(low=0, high=history.extent)
    snap = _FINE if len(leases) <= _MANY_LEASES else _COARSE
    apart = " apart" if len(leases) <= _FEW_LEASES else ""
    kinds = {
        state: [
            _place(band, over_time.timeline, space, history.at)
            for band in leases.bands
            if band.state == state
        ]
        for state in LeaseState
    }
    steps = [step for step in build_linear_scale(history.extent)[1] if step <= space.high]
    counts = {state: format_count(leases.counts[state]) for state in LeaseState}
    totals = ", ".join(f"{counts[state]} {_WORDS[state]}" for state, boxes in kinds.items() if boxes)
    box = "Each box is a lease" if not leases.are_merged else "Each box is one or more leases"
    return Chart(
        id="leases",
        title="When each part was sent",
        note=f"{box}: its height is its part of the request space, its width the time from when it was dealt "
        "to when it was closed.",
        description=f"Leases: {totals}.",
        shapes=[
            draw_boxes(boxes, f"lease-{state}{apart}", snap, _LEAST[state])
            for state, boxes in kinds.items()
            if boxes
        ],
        x=over_time.axis,
        y=Axis(title=_name_space(over_time), ticks=build_ticks(space, steps, format_compact)),
        legend=[
            Key(f"lease-{state}", f"{_WORDS[state]}: {counts[state]}")
            for state, boxes in kinds.items()
            if boxes
        ],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
    )


_LEAST: Mapping[LeaseState, float] = {
    LeaseState.ACTIVE: 5,
    LeaseState.CLOSED: 5,
    LeaseState.EXPIRED: 10,
}
"""The least width and height at which a lease is drawn, in units of `BOX`."""
_WORDS: Mapping[LeaseState, str] = {
    LeaseState.ACTIVE: "active",
    LeaseState.CLOSED: "closed",
    LeaseState.EXPIRED: "taken back",
}


def _name_space(over_time: RunOverTime) -> str:
    """Name the axis. With a rate, requests due at about the same time lie together, worker by worker."""
    is_open = over_time.plan is not None and over_time.plan.spec.is_open
    return "place in the request space" if is_open else "request index"


def _place(band: Band, timeline: Timeline, space: Scale, now: float) -> tuple[float, float, float, float]:
    closed_at = now if band.closed_at is None else band.closed_at
    return (
        timeline.place(band.cut_at),
        timeline.place(max(closed_at, band.cut_at)),
        space.place(band.start),
        space.place(band.stop),
    )


def _build_strip(name: str, note: str, parts: Sequence[Mapping[str, Any]], draw: Any) -> Html:
    shapes = [
        shape for number, part in enumerate(parts) for shape in draw(number / len(parts), part, len(parts))
    ]
    picture = element(
        "svg",
        element("title", note),
        *shapes,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
        role="img",
    )
    ends = element(
        "div", element("span", "0"), element("span", format_count(parts[-1]["stop"])), class_="strip-ends"
    )
    return element("div", element("p", note, class_="note"), picture, ends, class_=f"strip strip-{name}")


def _draw_states(at: float, part: Mapping[str, Any], parts: int) -> Iterator[Html]:
    length = part["stop"] - part["start"]
    bottom = 0.0
    for state in _STATES:
        if part[state]:
            top = bottom + part[state] / length
            yield _draw_part(at, parts, bottom, top, state, _describe_part(part, length))
            bottom = top


def _draw_again(at: float, part: Mapping[str, Any], parts: int) -> Iterator[Html]:
    length = part["stop"] - part["start"]
    yield _draw_part(at, parts, 0.0, 1.0, "never", _describe_part(part, length))
    if part["again"]:
        top = min(1.0, max(_LEAST_AGAIN, part["again"] / length))
        yield _draw_part(at, parts, 0.0, top, "again", _describe_part(part, length))


def _describe_part(part: Mapping[str, Any], length: int) -> str:
    counts = ", ".join(f"{format_share(part[state], length)} {state}" for state in _STATES if part[state])
    again = f", {format_count(part['again'])} sent again at most" if part["again"] else ""
    return f"{format_count(part['start'])} to {format_count(part['stop'] - 1)}: {counts}{again}"


def _draw_part(at: float, parts: int, bottom: float, top: float, class_: str, text: str) -> Html:
    return element(
        "rect",
        element("title", text),
        class_=class_,
        x=f"{1000 * at:.5g}",
        width=f"{max(1000 / parts - 2, 1):.4g}",
        y=f"{1000 * (1 - top):.4g}",
        height=f"{1000 * (top - bottom):.4g}",
    )

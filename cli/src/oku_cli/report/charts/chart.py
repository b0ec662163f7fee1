"""Draws a chart as HTML: shapes in an SVG that stretches, and all text around it, legible on any screen.

The SVG is a box of `BOX` by `BOX` units, stretched to the room there is; lines keep their width (CSS:
`non-scaling-stroke`). Without scripts a chart is complete; with them, the pointer reads out its `Series`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from oku_cli.report.charts.planned_load import PhaseBand
from oku_cli.report.charts.scale import AxisTick
from oku_cli.report.markup import Html, element, join_html
from oku_core.summary.summary import Unit
from oku_core.tables.formatting import in_units

BOX = 1000
_LEAST_APART = 0.075
"""The least distance of labels at the ends of lines, as a fraction of the height; closer ones overlap."""
_LEAST_NAMED = 0.025
"""The least width of a phase whose name is shown, as a fraction of the plot."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis of a chart: its title and its ticks.

    Charts stacked over a shared axis have to line up on the screen. So all of them leave room for labels at
    the right, even if only one has any.
    """

    title: str
    ticks: Sequence[AxisTick]
    is_shared: bool = False


@dataclass(frozen=True)
class Key:
    """An entry of the legend, or the label at the end of a line; its CSS class sets its colour."""

    class_: str
    label: str
    at: float = 0.0


@dataclass(frozen=True)
class Mark:
    """An event, drawn as a line across a chart over time."""

    at: float
    class_: str
    text: str


class Series(msgspec.Struct, frozen=True):
    """Numbers that the pointer reads out: a label, a unit, and one number for each position of the track."""

    label: str
    unit: str
    values: Sequence[float | None]


class Track(msgspec.Struct, frozen=True):
    """Positions at which charts are read out, from 0 to `BOX`, each with a heading; charts may share one."""

    x: list[float]
    heads: list[str]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Everything that is drawn of a chart.

    Attributes:
        id: its id in the page.
        title: what it shows.
        note: how to read it, in a sentence or two.
        description: what it shows in words, for readers who cannot see it.
        shapes: the SVG elements in the box.
        x: the axis below it.
        y: the axis at its left.
        legend: what the colours mean.
        ends: labels at the right, where lines end; `at` is a position on the y axis.
        marks: the events that are drawn across it.
        bands: the left and right end of each pause, from 0 to 1.
        phases: the phases of the run: their names stand above the plot.
        track: the name of the track along which it is read out.
        series: the numbers that are read out.
    """

    id: str
    title: str
    note: str
    description: str
    shapes: Sequence[Html]
    x: Axis
    y: Axis
    legend: Sequence[Key] = ()
    ends: Sequence[Key] = ()
    marks: Sequence[Mark] = ()
    bands: Sequence[tuple[float, float]] = ()
    phases: Sequence[PhaseBand] = ()
    track: str = ""
    series: Sequence[Series] = ()


def name_units(chart: Chart, unit: Unit) -> Chart:
    """A chart that speaks of what its run counts, rather than of requests; names of phases stay."""
    return replace(
        chart,
        title=in_units(chart.title, unit),
        note=in_units(chart.note, unit),
        description=in_units(chart.description, unit),
        y=replace(chart.y, title=in_units(chart.y.title, unit)),
        series=[msgspec.structs.replace(each, label=in_units(each.label, unit)) for each in chart.series],
    )


def build_chart(chart: Chart) -> Html:
    """Build the `figure` element of a chart."""
    picture = _build_picture(chart)
    parts = [
        element("figcaption", element("h3", chart.title), element("p", chart.note, class_="note")),
        *([_build_legend(chart.legend)] if chart.legend else []),
        element(
            "div",
            element("div", chart.y.title, class_="y-title"),
            *([element("div", *map(_build_phase, chart.phases), class_="phases")] if chart.phases else []),
            element("div", *(_place_tick(tick, "bottom") for tick in chart.y.ticks), class_="y-axis"),
            element(
                "div",
                picture,
                *(_build_mark(mark) for mark in chart.marks),
                class_="plot",
                data_chart=chart.id if chart.series else None,
                data_track=chart.track or None,
                tabindex="0" if chart.series else None,
            ),
            *([element("div", *_build_ends(chart.ends), class_="ends")] if chart.ends else []),
            element("div", *(_place_tick(tick, "left") for tick in chart.x.ticks), class_="x-axis"),
            element("div", chart.x.title, class_="x-title"),
            class_=" ".join(_list_classes(chart)),
        ),
    ]
    return element("figure", *parts, id=chart.id)


def draw_line(points: Iterable[tuple[float, float]], class_: str) -> Html:
    """Draw a line through points whose coordinates go from 0 to 1, to the right and upwards."""
    return element("path", class_=f"line {class_}", d=write_path_data(points))


def draw_area(
    upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], class_: str
) -> Html:
    """Draw the area between two lines."""
    return element("path", class_=f"area {class_}", d=f"{write_path_data([*upper, *reversed(lower)])}Z")


def draw_boxes(
    boxes: Iterable[tuple[float, float, float, float]], class_: str, snap: float = 0.1, least: float = 0.1
) -> Html:
    """Draw boxes as one shape.

    Args:
        boxes: left, right, bottom and top of each, from 0 to 1.
        class_: the CSS class of the shape.
        snap: the grid, in units of `BOX`, to which corners are rounded; equal boxes are drawn once.
        least: the least width and height of a box, in units of `BOX`, so that it can be seen.
    """
    pieces: dict[str, None] = {}
    for left, right, bottom, top in boxes:
        x0, x1 = _snap(left * BOX, snap), _snap(right * BOX, snap)
        y0, y1 = _snap((1 - top) * BOX, snap), _snap((1 - bottom) * BOX, snap)
        width, height = max(x1 - x0, least), max(y1 - y0, least)
        pieces[f"M{x0:.5g} {y0:.5g}h{width:.4g}v{height:.4g}h-{width:.4g}z"] = None
    return element("path", class_=f"boxes {class_}", d="".join(pieces))


def write_path_data(points: Iterable[tuple[float, float]]) -> str:
    """Write points as the data of an SVG path."""
    return "M" + "L".join(f"{x * BOX:.5g} {(1 - y) * BOX:.4g}" for x, y in points)


def _snap(number: float, step: float) -> float:
    return round(number / step) * step


def _list_classes(chart: Chart) -> Iterator[str]:
    yield "chart"
    if chart.ends or chart.x.is_shared:
        yield "has-ends"
    if chart.phases:
        yield "has-phases"


def _build_picture(chart: Chart) -> Html:
    grid = [
        element("line", class_="grid", x1="0", x2=str(BOX), y1=f"{(1 - tick.at) * BOX:.4g}",
                y2=f"{(1 - tick.at) * BOX:.4g}")
        for tick in chart.y.ticks
    ]  # fmt: skip
    bands = [
        element("rect", class_="pause", x=f"{left * BOX:.4g}", width=f"{(right - left) * BOX:.4g}", y="0",
                height=str(BOX))
        for left, right in chart.bands
    ]  # fmt: skip
    return element(
        "svg",
        element("title", chart.title, id=f"{chart.id}-title"),
        element("desc", chart.description, id=f"{chart.id}-desc"),
        *bands,
        *_draw_phases(chart.phases),
        *grid,
        *chart.shapes,
        viewBox=f"0 0 {BOX} {BOX}",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{chart.id}-title {chart.id}-desc",
    )


def _draw_phases(phases: Iterable[PhaseBand]) -> Iterator[Html]:
    """Shade the warm-up, and draw a line where each phase but the first begins."""
    for phase in phases:
        x = f"{phase.left * BOX:.4g}"
        if phase.is_warm_up:
            width = f"{(phase.right - phase.left) * BOX:.4g}"
            yield element("rect", class_="warm-up", x=x, width=width, y="0", height=str(BOX))
        if phase.left:
            yield element("line", class_="phase", x1=x, x2=x, y1="0", y2=str(BOX))


def _build_phase(phase: PhaseBand) -> Html:
    width = phase.right - phase.left
    place = f"left:{100 * phase.left:.2f}%;width:{100 * width:.2f}%"
    name = phase.name if width >= _LEAST_NAMED else ""
    return element(
        "span", name, style=place, title=phase.name, class_="warm-up" if phase.is_warm_up else None
    )


def _build_legend(keys: Iterable[Key]) -> Html:
    return element(
        "ul",
        *(element("li", element("span", class_=f"key {key.class_}"), key.label) for key in keys),
        class_="legend",
    )


def _build_ends(ends: Sequence[Key]) -> list[Html]:
    """Build labels from the bottom up: close ones are pushed apart, and back down if they reach the top."""
    ordered = sorted(ends, key=lambda key: key.at)
    places: list[float] = []
    for key in ordered:
        places.append(max(key.at, places[-1] + _LEAST_APART) if places else key.at)
    ceiling = 1.0
    for place in reversed(range(len(places))):
        places[place] = min(places[place], ceiling)
        ceiling = places[place] - _LEAST_APART
    return [
        element("span", key.label, class_=key.class_, style=f"bottom:{100 * place:.1f}%")
        for key, place in zip(ordered, places, strict=True)
    ]


def _place_tick(tick: AxisTick, side: str) -> Html:
    class_ = " ".join(
        name
        for name, is_so in (("minor", tick.is_minor), ("first", tick.at < 0.04), ("last", tick.at > 0.96))
        if is_so
    )
    return element("span", tick.label, class_=class_ or None, style=f"{side}:{100 * tick.at:.2f}%")


def _build_mark(mark: Mark) -> Html:
    return element("i", class_=f"mark {mark.class_}", style=f"left:{100 * mark.at:.2f}%", title=mark.text)


def build_section(heading: str, *content: str, id_: str) -> Html:
    """Build a section of the page."""
    return element("section", element("h2", heading), join_html(*content), id=id_)

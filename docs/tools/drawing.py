"""Draws panels of a dashboard with matplotlib, in the manner of Grafana's dark theme."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from docs.tools.units import format_value
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.dates import AutoDateLocator, DateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from tests.kit.dashboards import DashboardQuery, Frame

GROUND, PANEL, BORDER = "#111217", "#181b1f", "#2a2d34"
TEXT, FAINT, GRID = "#ccccdc", "#8e8e99", "#26292f"
STYLE: Mapping[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "DejaVu Sans"],
    "font.size": 8.5,
    "text.color": TEXT,
    "axes.facecolor": PANEL,
    "axes.edgecolor": BORDER,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "text.parse_math": False,
}
_COLOURS = {
    "green": "#73bf69", "light-green": "#96d98d", "yellow": "#fade2a", "orange": "#ff9830", "red": "#f2495c",
    "purple": "#b877d9", "blue": "#5794f2", "light-blue": "#8ab8ff",
}  # fmt: skip
"""What Grafana's names are in its dark theme."""
_LEFT_PX = 80
"""What the values of an axis take."""
_LEGEND_PX = 310
"""What a legend beside its panel takes."""

Fetched = Sequence[tuple[DashboardQuery, Sequence[Frame]]]
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Mark:
    """An annotation: when, and Grafana's name of its colour."""

    at_s: float
    colour: str


@dataclass(frozen=True)
class Times:
    """The time axis: from when to when, in which steps, with which annotations."""

    span_s: tuple[float, float]
    step_s: float
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Place:
    """A rectangle of a figure: its lower left corner as a share of it, its size in pixels."""

    figure: Figure
    left: float
    bottom: float
    width_px: float
    height_px: float

    def cut(self, left_px: float, bottom_px: float, right_px: float, top_px: float) -> Axes:
        """Axes that leave so much at each side."""
        width, height = self.figure.get_size_inches() * 100
        return self.figure.add_axes(
            (
                self.left + left_px / width,
                self.bottom + bottom_px / height,
                (self.width_px - left_px - right_px) / width,
                (self.height_px - bottom_px - top_px) / height,
            )
        )


@dataclass(frozen=True)
class Shown:
    """A frame as it is shown.

    Attributes:
        name: in legends.
        colour: of it.
        unit: of its values.
        frame: its values.
        settings: those of overrides that are for it, by id.
    """

    name: str
    colour: str
    unit: str
    frame: Frame
    settings: Json


def draw(place: Place, panel: Json, fetched: Fetched, times: Times) -> None:
    """Draw a panel with what its queries gave."""
    board = place.cut(0, 0, 0, 0)
    board.set_axis_off()
    box = FancyBboxPatch(
        (0.0, 0.0), 1, 1, boxstyle="round,pad=0,rounding_size=0.006", transform=board.transAxes,
        facecolor=PANEL, edgecolor=BORDER, linewidth=1, mutation_aspect=place.width_px / place.height_px,
    )  # fmt: skip
    board.add_patch(box)
    x, y = 10 / place.width_px, 1 - 16 / place.height_px
    board.text(x, y, panel["title"], va="center", size=9.5, weight="bold")
    shown = list(_list_shown(panel, fetched))
    if any(len(one.frame.values) for one in shown):
        _DRAWERS[panel["type"]](place, panel, shown, times)
    else:
        board.text(
            0.5, 0.45, panel["fieldConfig"]["defaults"]["noValue"], ha="center", va="center", color=FAINT
        )


def _list_shown(panel: Json, fetched: Fetched) -> Iterator[Shown]:
    defaults = panel["fieldConfig"]["defaults"]
    for query, frames in fetched:
        for frame in frames:
            settings: dict[str, Any] = {}
            name = frame.name
            for override in panel["fieldConfig"]["overrides"]:
                if _matches(override["matcher"], name, f"Value #{query.ref}"):
                    settings |= {setting["id"]: setting["value"] for setting in override["properties"]}
                    name = settings.get("displayName", name)
            thresholds = settings.get("thresholds", defaults["thresholds"])
            colour = settings.get("color", defaults["color"])
            if colour["mode"] == "thresholds" and frame.values and not isinstance(frame.values[-1], str):
                picked = _pick_threshold(thresholds, frame.values[-1])
            else:
                picked = colour.get("fixedColor", "blue")
            unit = settings.get("unit", defaults["unit"])
            yield Shown(name, _COLOURS.get(picked, picked), unit, frame, settings)


def _matches(matcher: Json, *names: str) -> bool:
    wanted = matcher["options"]
    if matcher["id"] == "byRegexp":
        return any(re.search(wanted.strip("/"), name) for name in names)
    return wanted in names


def _pick_threshold(thresholds: Json, value: float) -> str:
    reached = [
        step["color"] for step in thresholds["steps"] if step["value"] is None or value >= step["value"]
    ]
    return str(reached[-1])


def _draw_stat(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    options = panel["options"]
    if options["reduceOptions"]["fields"]:
        label = options["reduceOptions"]["fields"].strip("/^$")
        state = shown[0].frame.labels[label]
        mappings = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
        colour = mappings[state]["color"]
        axes = place.cut(0, 0, 0, 30)
        axes.set_axis_off()
        axes.add_patch(
            FancyBboxPatch((0.03, 0.08), 0.94, 0.84, boxstyle="round,pad=0,rounding_size=0.03",
                           facecolor=_COLOURS.get(colour, colour), edgecolor="none")
        )  # fmt: skip
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.text(0.5, 0.5, state, ha="center", va="center", size=15, weight="bold", color=GROUND)
        return
    is_tall = options["orientation"] == "horizontal"
    count = len(shown)
    axes = place.cut(8, 6, 8, 30)
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for number, one in enumerate(shown):
        text = format_value(one.frame.values[-1], one.unit, _get_decimals(panel, one))
        if is_tall:
            y = 1 - (number + 0.5) / count
            axes.text(0.03, y, one.name, va="center", size=9.5, color=TEXT)
            axes.text(0.97, y, text, va="center", ha="right", size=14, weight="bold", color=one.colour)
            continue
        x = (number + 0.5) / count
        has_name = options["textMode"] == "value_and_name"
        if has_name:
            axes.text(x, 0.78, one.name, ha="center", va="center", size=9.5)
        room_px = (place.width_px - 16) / count
        size = min(21.0, room_px / (len(text) + 2) * 1.1)
        y = 0.36 if has_name else (0.68 if options["graphMode"] == "area" else 0.5)
        axes.text(x, y, text, ha="center", va="center", size=size, weight="bold", color=one.colour)
    if options["graphMode"] == "area":
        _draw_spark(place, shown[0], times)


def _draw_spark(place: Place, one: Shown, times: Times) -> None:
    axes = place.cut(1, 1, 1, place.height_px * 0.62)
    axes.set_axis_off()
    axes.plot(one.frame.times_s, one.frame.values, color=one.colour, linewidth=1)
    axes.fill_between(one.frame.times_s, one.frame.values, color=one.colour, alpha=0.2, linewidth=0)
    axes.set(xlim=times.span_s, ylim=(0, max(one.frame.values) * 1.15 or 1))


def _draw_gauge(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    del times
    one = shown[0]
    axes = place.cut(8, 2, 8, 26)
    axes.set_axis_off()
    axes.set_aspect("equal")
    share = max(0.0, min(1.0, one.frame.values[-1]))
    for start, end, colour in ((0.0, 1.0, BORDER), (0.0, share, one.colour)):
        angles = [math.pi * (1.15 - 1.3 * (start + (end - start) * step / 90)) for step in range(91)]
        axes.plot(
            [math.cos(a) for a in angles], [math.sin(a) for a in angles], color=colour, linewidth=11,
            solid_capstyle="butt",
        )  # fmt: skip
    axes.set(xlim=(-1.5, 1.5), ylim=(-0.55, 1.2))
    text = format_value(one.frame.values[-1], one.unit, _get_decimals(panel, one))
    axes.text(0, 0.05, text, ha="center", va="center", size=14, weight="bold", color=one.colour)


def _draw_bar_gauge(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    del times
    axes = place.cut(12, 8, 12, 32)
    axes.set_axis_off()
    most = max(one.frame.values[-1] for one in shown) or 1
    for number, one in enumerate(shown):
        y = len(shown) - number - 0.5
        value = one.frame.values[-1]
        height = min(0.62, 22 / (place.height_px - 40) * len(shown))
        axes.barh(y, 1, height=height, left=0.5, color=GRID)
        axes.barh(y, value / most, height=height, left=0.5, color=one.colour, alpha=0.85)
        axes.text(0.47, y, one.name, ha="right", va="center", size=9)
        text = format_value(value, one.unit, _get_decimals(panel, one))
        axes.text(1.53, y, text, ha="left", va="center", size=10, weight="bold", color=one.colour)
    axes.set(xlim=(0, 1.95), ylim=(0, len(shown)))


def _draw_lines(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    custom = panel["fieldConfig"]["defaults"]["custom"]
    calculations = panel["options"]["legend"]["calcs"]
    is_beside = panel["options"]["legend"]["placement"] == "right"
    below_px = 0 if is_beside else 18 + 15 * len(shown)
    has_right = any(one.settings.get("custom.axisPlacement") == "right" for one in shown)
    right_px = _LEGEND_PX + 24 if is_beside else 56 if has_right else 14
    axes = place.cut(_LEFT_PX, below_px + 26, right_px, 34)
    _prepare(axes, times)
    if custom["stacking"]["mode"] == "normal":
        _draw_stack(axes, shown, times, is_bars=custom["drawStyle"] == "bars")
    for one in shown:
        is_right = one.settings.get("custom.axisPlacement") == "right"
        on = axes.twinx() if is_right else axes
        if is_right:
            _label_values(on, one.unit, colour=one.colour)
        if custom["stacking"]["mode"] == "none":
            x, y = _break_at_gaps(one.frame, custom["spanNulls"] / 1000)
            on.plot(x, y, color=one.colour, linewidth=1.3, zorder=3)
            if custom["fillOpacity"] and not is_right:
                on.fill_between(x, y, color=one.colour, alpha=custom["fillOpacity"] / 100, linewidth=0)
        if is_right:
            on.set_ylim(bottom=0, top=max(one.frame.values) * 1.5)
    if custom.get("scaleDistribution", {}).get("type") == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=8))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1e-9))
        if not any(any(one.frame.values) for one in shown):
            axes.set_ylim(0, 1)
    _label_values(axes, shown[0].unit)
    left_px = place.width_px - _LEGEND_PX if is_beside else 12
    top_px = 40 if is_beside else place.height_px - 24 - 15 * len(shown)
    bottom_px = place.height_px - 58 - 15 * len(shown) if is_beside else 6
    _draw_legend(place.cut(left_px, bottom_px, 12, top_px), shown, calculations)


def _draw_stack(axes: Axes, shown: Sequence[Shown], times: Times, *, is_bars: bool) -> None:
    samples = sorted({at for one in shown for at in one.frame.times_s})
    floor = dict.fromkeys(samples, 0.0)
    for one in shown:
        values = dict(zip(one.frame.times_s, one.frame.values, strict=True))
        heights = [values.get(at, 0.0) for at in samples]
        bottoms = [floor[at] for at in samples]
        tops = [low + height for low, height in zip(bottoms, heights, strict=True)]
        days = [_to_day(at) for at in samples]
        if is_bars:
            axes.bar(
                days, heights, bottom=bottoms, width=times.step_s / 86400 * 0.9, color=one.colour, alpha=0.85
            )
        else:
            axes.fill_between(days, bottoms, tops, color=one.colour, alpha=0.6, linewidth=0)
        floor = dict(zip(samples, tops, strict=True))


def _draw_heatmap(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    options = panel["options"]
    axes = place.cut(_LEFT_PX, 58, 14, 34)
    _prepare(axes, times)
    axes.grid(visible=False)
    rows = sorted(shown, key=lambda one: float(one.name))
    # Loki puts steps at multiples of their length, wherever the time range begins.
    first = min(at for one in rows for at in one.frame.times_s)
    last = max(at for one in rows for at in one.frame.times_s)
    columns = [first + times.step_s * step for step in range(round((last - first) / times.step_s) + 1)]
    cells = [[math.nan] * len(columns) for _ in rows]
    for number, one in enumerate(rows):
        for at, value in zip(one.frame.times_s, one.frame.values, strict=True):
            if value > options["filterValues"]["le"]:
                cells[number][round((at - first) / times.step_s)] = value
    edges = [_to_day(at - times.step_s) for at in (*columns, columns[-1] + times.step_s)]
    colour = options["color"]
    largest = colour.get("max", max(value for one in rows for value in one.frame.values)) or 1
    norm = PowerNorm(1.0 if colour["scale"] == "linear" else colour["exponent"], vmin=0, vmax=largest)
    fill = _COLOURS.get(colour["fill"], colour["fill"])
    scheme = LinearSegmentedColormap.from_list("", [PANEL, fill]) if colour["mode"] == "opacity" else "turbo"
    mesh = axes.pcolormesh(edges, range(len(rows) + 1), cells, cmap=scheme, norm=norm, rasterized=True)
    every = max(1, math.ceil(len(rows) / 9))
    is_upper = options["rowsFrame"]["layout"] == "le"
    ticks = range(0, len(rows), every)
    axes.set_yticks([tick + (1 if is_upper else 0.5) for tick in ticks])
    unit = options["yAxis"]["unit"]
    axes.set_yticklabels(
        [
            rows[tick].name if unit == "none" else format_value(float(rows[tick].name), unit, None)
            for tick in ticks
        ]
    )
    bar = place.cut(_LEFT_PX, 16, place.width_px - 160 - _LEFT_PX, place.height_px - 26)
    scale = place.figure.colorbar(mesh, cax=bar, orientation="horizontal")
    scale.outline.set_visible(False)
    scale.ax.xaxis.set_major_locator(MaxNLocator(2))
    scale.ax.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: format_value(value, options["cellValues"]["unit"], None))
    )
    scale.ax.tick_params(length=0, labelsize=7.5)


def _draw_bar_chart(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    del times
    axes = place.cut(_LEFT_PX, 52, 14, 34)
    key = panel["options"]["xField"]
    names = sorted({one.frame.labels[key] for one in shown})
    floor = dict.fromkeys(names, 0.0)
    series: dict[str, Shown] = {}
    for one in shown:
        name = one.frame.labels[key]
        series.setdefault(one.name, one)
        axes.bar(
            names.index(name),
            one.frame.values[-1],
            bottom=floor[name],
            width=0.92,
            color=one.colour,
            alpha=0.85,
        )
        floor[name] += one.frame.values[-1]
    axes.set_xticks(range(0, len(names), 2), names[::2])
    axes.set_xlim(-0.6, len(names) - 0.4)
    _dress(axes)
    _label_values(axes, shown[0].unit)
    _draw_names(place, list(series.values()))


def _draw_logs(place: Place, panel: Json, shown: Sequence[Shown], times: Times) -> None:
    del times
    lines = sorted(
        ((at, text) for one in shown for at, text in zip(one.frame.times_s, one.frame.values, strict=True)),
        reverse=panel["options"]["sortOrder"] == "Descending",
    )
    axes = place.cut(10, 6, 10, 32)
    axes.set_axis_off()
    most = int((place.height_px - 40) // 17)
    for number, (at, text) in enumerate(lines[:most]):
        y = 1 - (number + 0.5) * 17 / (place.height_px - 38)
        sample = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
        room = int((place.width_px - 100) / 6.9)
        axes.text(0, y, sample, va="center", size=8, color=FAINT, family="monospace")
        said = text if len(text) <= room else text[: room - 1] + "…"
        axes.text(70 / place.width_px, y, said, va="center", size=8, family="monospace")


def _prepare(axes: Axes, times: Times) -> None:
    first, last = (_to_day(at) for at in times.span_s)
    axes.set_xlim(first, last)
    width_px = axes.get_position().width * axes.get_figure().get_size_inches()[0] * 100
    axes.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=max(4, int(width_px / 95))))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S" if last - first < 1 / 96 else "%H:%M", tz=UTC))
    _dress(axes)
    for mark in times.marks:
        x = _to_day(mark.at_s)
        colour = _COLOURS.get(mark.colour, mark.colour)
        axes.axvline(x, color=colour, linewidth=1, linestyle=(0, (4, 3)), alpha=0.9, zorder=4)
        axes.plot([x], [0], marker="^", markersize=5, color=colour, transform=axes.get_xaxis_transform(),
                  clip_on=False, zorder=5)  # fmt: skip


def _to_day(at_s: float) -> float:
    """A Unix time as matplotlib counts time."""
    return float(date2num(datetime.fromtimestamp(at_s, UTC)))


def _dress(axes: Axes) -> None:
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _label_values(axes: Axes, unit: str, colour: str = FAINT) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit, None)))
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=unit in ("short", "locale")))
    axes.tick_params(which="both", length=0, colors=colour)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _break_at_gaps(frame: Frame, longest_s: float) -> tuple[list[float], list[float]]:
    x: list[float] = []
    y: list[float] = []
    for number, (at, value) in enumerate(zip(frame.times_s, frame.values, strict=True)):
        day = _to_day(at)
        if number and at - frame.times_s[number - 1] > longest_s:
            x.append(day)
            y.append(math.nan)
        x.append(day)
        y.append(value)
    return x, y


_CALCULATIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "sum": sum,
    "lastNotNull": lambda values: values[-1],
}
_HEADS = {"mean": "Mean", "max": "Max", "sum": "Total", "lastNotNull": "Last"}


def _draw_legend(axes: Axes, shown: Sequence[Shown], calculations: Sequence[str]) -> None:
    axes.set_axis_off()
    width_px = axes.get_position().width * axes.get_figure().get_size_inches()[0] * 100
    axes.set(xlim=(0, width_px), ylim=(len(shown) + 1, 0))
    columns = [width_px - 92 * number for number in reversed(range(len(calculations)))]
    for x, name in zip(columns, calculations, strict=True):
        axes.text(x, 0.5, _HEADS[name], ha="right", va="center", size=8, color="#6e9fff")
    for number, one in enumerate(shown):
        y = number + 1.5
        axes.plot([2, 12], [y, y], color=one.colour, linewidth=3, solid_capstyle="round")
        axes.text(18, y, one.name, va="center", size=8.5)
        for x, name in zip(columns, calculations, strict=True):
            value = _CALCULATIONS[name](one.frame.values)
            axes.text(x, y, format_value(value, one.unit, None), ha="right", va="center", size=8.5)


def _draw_names(place: Place, shown: Sequence[Shown]) -> None:
    axes = place.cut(_LEFT_PX, 6, 12, place.height_px - 24)
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for number, one in enumerate(shown):
        x = number * 0.09
        axes.plot([x, x + 0.01], [0.5, 0.5], color=one.colour, linewidth=3, solid_capstyle="round")
        axes.text(x + 0.016, 0.5, one.name, va="center", size=8.5)


def _get_decimals(panel: Json, one: Shown) -> int | None:
    decimals: int | None = one.settings.get("decimals", panel["fieldConfig"]["defaults"].get("decimals"))
    return decimals


_DRAWERS: Mapping[str, Callable[[Place, Json, Sequence[Shown], Times], None]] = {
    "stat": _draw_stat,
    "gauge": _draw_gauge,
    "bargauge": _draw_bar_gauge,
    "timeseries": _draw_lines,
    "heatmap": _draw_heatmap,
    "barchart": _draw_bar_chart,
    "logs": _draw_logs,
}

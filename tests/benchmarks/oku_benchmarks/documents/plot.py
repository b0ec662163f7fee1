"""Pictures of the benchmarks: SVG with a white ground, text as text."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oku_benchmarks.measuring.series import Series

STYLE = {
    "svg.fonttype": "none",  # the reader's fonts, and a file that can be searched
    "svg.hashsalt": "oku",  # the same numbers, the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.2,
}
"""Of all pictures."""


def draw_series(path: Path, title: str, series: Series, marks: Sequence[tuple[float, str]]) -> None:
    """Draw a run over time: rate, requests in flight, memory of each process.

    Args:
        path: of the SVG.
        title: above it.
        series: what to draw.
        marks: what happened on the way: seconds after the first request, and what.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 8.5), layout="constrained", facecolor="white")
        rate, flight, memory = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1, 2))
        minutes = [step * series.step_s / 60 for step in range(1, len(series.rates_rps) + 1)]
        figure.suptitle(title, fontweight="bold")
        _draw(rate, "requests/s", minutes, {"": series.rates_rps})
        _draw(flight, "in flight", minutes, {"": series.in_flight})
        memory.set_prop_cycle(color=mpl.colormaps["tab20"].colors)
        _draw(memory, "resident memory, MB", minutes, series.memory_mb)
        memory.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        memory.set_xlabel("minutes after the first request")
        for at_s, text in marks:
            for axes in (rate, flight, memory):
                axes.axvline(at_s / 60, color="#b91c1c", linewidth=1, linestyle=":")
            rate.annotate(
                text, (at_s / 60, 1.0), xycoords=("data", "axes fraction"), xytext=(3, 1),
                textcoords="offset points", color="#b91c1c", fontsize=9, va="bottom",
            )  # fmt: skip
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw(
    axes: Axes, label: str, minutes: Sequence[float], lines: Mapping[str, Sequence[float | None]]
) -> None:
    for name, values in lines.items():
        shown = [float("nan") if value is None else value for value in values]
        axes.plot(minutes, shown, label=name or None)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

"""The picture of the benchmark `scaling`: cost and delays over the number of workers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oku_benchmarks.cases.scaling_step import Step
from oku_benchmarks.documents.plot import STYLE


def draw_scaling(path: Path, steps: Sequence[Step]) -> None:
    """Draw all steps into an SVG at `path`, over a logarithmic number of workers."""
    workers = [step.workers for step in steps]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 7), layout="constrained", facecolor="white")
        share, memory, messages, delay = figure.subplots(2, 2, sharex=True).flat
        _draw(
            share, "coordinator, % of a core", workers, {"": [100 * step.coordinator_cpu for step in steps]}
        )
        _draw(memory, "coordinator, MB", workers, {"": [step.coordinator_rss_mb for step in steps]})
        for axes in (share, memory):
            axes.set_ylim(bottom=0)
        for axes in (messages, delay):
            axes.set_yscale("log")
            axes.set_xlabel("workers")
        _draw(
            messages,
            "taken per second",
            workers,
            {
                "checkpoints": [step.checkpoints_per_s for step in steps],
                "progress events": [step.progress_per_s for step in steps],
            },
        )
        _draw(
            delay,
            "delay, ms",
            workers,
            {
                "checkpoint to confirmation, p50": [step.confirm.p50_ms for step in steps],
                "checkpoint to confirmation, p99": [step.confirm.p99_ms for step in steps],
            },
        )
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw(axes: Axes, label: str, workers: Sequence[int], lines: Mapping[str, Sequence[float]]) -> None:
    for name, values in lines.items():
        axes.plot(workers, values, marker="o", label=name or None)
    axes.set_xscale("log")
    axes.set_ylabel(label)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8)

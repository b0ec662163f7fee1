"""The picture of a freeze: what Oku's three distributions are made of, and what each tool reports as p99."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oku_benchmarks.documents.plot import STYLE
from oku_benchmarks.plan import Freeze
from oku_benchmarks.stacks.arrival_target import Record
from oku_benchmarks.turns.paced_turn import Distribution

_SECOND = 10**9
_BEFORE_S, _AFTER_S = 0.5, 0.75
_EARLY = 0.01
_POINTS = 1_000
_RESPONSE, _LATENCY, _LATENESS, _OTHER = "#b91c1c", "#1d4ed8", "#0f766e", "#64748b"


@dataclass(frozen=True)
class Bar:
    """The p99 that a tool reports.

    Args:
        name: what stands beside it: the tool, and which of its figures if there are several.
        p99_ms: of what it calls latency; None if it reports no p99.
        left_out: requests of the plan that it says it did not make.
        is_response_time: whether it is Oku's, from due to answered.
        is_latency: whether it is Oku's, from sent to answered.
    """

    name: str
    p99_ms: float | None
    left_out: int = 0
    is_response_time: bool = False
    is_latency: bool = False


def draw_freeze(
    path: Path,
    freeze: Freeze,
    records: Sequence[Record],
    bars: Sequence[Bar],
    truth: Distribution,
) -> None:
    """Draw both parts into an SVG.

    Args:
        path: of the SVG.
        freeze: what happened.
        records: of a run of Oku whose requests have their indices in their paths.
        bars: what each reports.
        truth: what it would be without omission.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 9), layout="constrained", facecolor="white")
        course, reports = figure.subplots(2, 1, height_ratios=(5, 4))
        _draw_course(course, freeze, records)
        _draw_reports(reports, bars, truth)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_course(axes: Axes, freeze: Freeze, records: Sequence[Record]) -> None:
    numbered = sorted((each for each in records if each.answered), key=lambda each: each.number)
    behind = sorted(each.arrived - _find_due(each, freeze) for each in numbered)
    origin = behind[int(_EARLY * len(behind))]
    shown = [
        (due / _SECOND, each, origin + due)
        for each in numbered
        if -_BEFORE_S < (due := _find_due(each, freeze)) / _SECOND - freeze.at_s < freeze.for_s + _AFTER_S
    ]
    shown = shown[:: max(1, len(shown) // _POINTS)]
    seconds = [at_s for at_s, _, _ in shown]
    lines = {
        "response time: due to answered": (_RESPONSE, [each.answered - due for _, each, due in shown]),
        "lateness: due to sent": (_LATENESS, [each.arrived - due for _, each, due in shown]),
        "latency: sent to answered": (_LATENCY, [each.answered - each.arrived for _, each, _ in shown]),
    }
    for name, (color, values) in lines.items():
        # The first one is the sum of the others: it lies behind them.
        width, opacity = (5.0, 0.4) if color == _RESPONSE else (1.2, 1.0)
        axes.plot(
            seconds,
            [value / _SECOND for value in values],
            label=name,
            color=color,
            linewidth=width,
            alpha=opacity,
        )
    axes.axvspan(freeze.at_s, freeze.at_s + freeze.for_s, color="#64748b", alpha=0.12, linewidth=0)
    axes.set_title(
        f"{freeze.rate:,} requests/s, at most 100 in flight; the target freezes for {freeze.for_s:g} s",
        loc="left",
        fontsize=11,
    )
    axes.set_xlabel("when the request was due, s")
    axes.set_ylabel("s")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _find_due(record: Record, freeze: Freeze) -> int:
    """When the plan wanted it sent, in ns since the plan began: the number in its path is its rank."""
    return (2 * record.number + 1) * _SECOND // (2 * freeze.rate)


def _draw_reports(axes: Axes, bars: Sequence[Bar], truth: Distribution) -> None:
    values = [bar.p99_ms or 0 for bar in bars]
    colors = [_RESPONSE if bar.is_response_time else _LATENCY if bar.is_latency else _OTHER for bar in bars]
    axes.barh([bar.name for bar in bars], values, color=colors)
    axes.invert_yaxis()
    assert truth.p99_ms is not None
    axes.axvline(truth.p99_ms, color="black", linewidth=1, linestyle=":")
    axes.set_xlim(0, 1.35 * max(truth.p99_ms, *values))
    for row, bar in enumerate(bars):
        text = " says none" if bar.p99_ms is None else f" {bar.p99_ms:,.0f}"
        left_out = f", and {bar.left_out:,} not sent" if bar.left_out else ""
        axes.annotate(text + left_out, (bar.p99_ms or 0, row), va="center", fontsize=9)
    axes.set_title(
        f"The p99 that each reports, ms; dotted: of the planned requests, {truth.p99_ms:,.0f} ms",
        loc="left",
        fontsize=11,
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(visible=False, axis="y")

"""Panels of the request space: which parts of it are accounted for, leased, pending, or sent again."""

from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import PART_COLOURS
from oku_dashboards.grafana.logql import ONE_RUN, SPAN, STEP, Lines
from oku_dashboards.grafana.panel import Exactness, Panel
from oku_dashboards.grafana.visualizations import STACKED, bar_chart, heatmap, lines

COVERAGE_STEP = "10s"
"""Lines of coverage come every 5 s, or a tick later; a step of 10 s always holds one."""
_PARTS = ("accounted", "leased", "pending")
_SAID = {
    "accounted": "has an outcome in the ledger",
    "leased": "is leased to workers",
    "pending": "is not leased yet",
    "again": "was in leases that were taken back, and may have been sent more than once; it may exceed 100 %",
}


def build_now_panel() -> Panel:
    """The parts of the request space, as of the latest coverage."""
    coverage = Lines(ONE_RUN, LineKind.COVERAGE)
    return bar_chart(
        key="part",
        title="Parts of the request space",
        shows="Each bar is a fiftieth of the request space, from the first index to the last: how much of"
        " it is accounted for, leased and pending, as of the latest coverage.",
        exactness=Exactness.LEDGER,
        queries={part: coverage.last(part, SPAN, ("part",)) for part in _PARTS},
        unit="locale",
        decimals=0,
        width=24,
    ).colour({part: PART_COLOURS[part] for part in _PARTS})


def build_totals_panel() -> Panel:
    """The whole request space over time."""
    ticks = Lines(ONE_RUN, LineKind.TICK)
    return lines(
        custom=STACKED,
        table=("lastNotNull",),
        title="Whole request space",
        shows="Requests that are accounted for, leased and pending, stacked; together they are the run.",
        exactness=Exactness.LEDGER,
        queries={part: ticks.last(part, STEP) for part in _PARTS},
        unit="locale",
        width=24,
        min_step="2s",
    ).colour({part: PART_COLOURS[part] for part in _PARTS})


def build_map_panel(part: str) -> Panel:
    """One state of the request space over time, as a heatmap."""
    coverage = Lines(ONE_RUN, LineKind.COVERAGE)
    share = f"label_format share=`{{{{ divf .{part} (subf .stop .start) }}}}` | unwrap share"
    picked = coverage.pick("part", part, "start", "stop")
    expr = f"max by (part) (last_over_time({picked} | {share} [{STEP}]) by (run, part))"
    return heatmap(
        fill=PART_COLOURS[part],
        # Little is sent again, and must still be visible.
        is_even=part != "again",
        largest=None if part == "again" else 1,
        value=part,
        title=f"{part.capitalize()}",
        shows=f"The share of each fiftieth of the request space that {_SAID[part]}. The first index is at"
        " the bottom, the last at the top.",
        exactness=Exactness.LEDGER,
        queries={"{{part}}": expr},
        unit="percentunit",
        min_step=COVERAGE_STEP,
        height=10,
        no_value="no coverage in the time range",
    )

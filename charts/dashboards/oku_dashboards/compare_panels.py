"""Panels of two runs: their differences, their accounts, and both since their start."""

from collections.abc import Sequence
from dataclasses import replace

from oku_core.accounting.outcome import Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import CAUTION, FAINT, GOOD, PLAIN
from oku_dashboards.grafana.logql import SPAN, Lines
from oku_dashboards.grafana.panel import Exactness, Panel, by_threshold
from oku_dashboards.grafana.visualizations import bar_chart, logs, stat
from oku_dashboards.stat_panels import LATENCIES, StatPanels

RUN_A, RUN_B = 'run="$run_a"', 'run="$run_b"'
_NOTABLE = 0.05
"""A smaller change has no colour."""
_MISSING = "choose two runs, and a time range that holds both"
_SINCE = "since"
_BY = (_SINCE,)
_CLOCK = (
    "label_format s=`{{ int (mulf (floor (divf (maxf 0 (subf .active_s .seconds)) $step)) $step) }}`"
    f" | label_format {_SINCE}="
    '`{{ printf "%02d:%02d:%02d" (div (int .s) 3600) (mod (div (int .s) 60) 60) (mod (int .s) 60) }}`'
)
"""How long a run had been active when a tick began, in whole steps: text that sorts by time."""
_TICKS = tuple(
    Lines(whose, LineKind.TICK, where=_CLOCK, needs=("active_s", "seconds")) for whose in (RUN_A, RUN_B)
)


def build_account_of(whose: str, label: str) -> Sequence[Panel]:
    """The account of one of the runs."""
    stats = StatPanels(whose)
    panels = (
        stats.build_state().wide(3),
        stats.build_account(("requests", "accounted", "resent at most", "active", "throughput")).wide(16),
        stats.build_failures().wide(5),
        stats.build_latencies().wide(24),
    )
    return [replace(panel, title=f"{panel.title} of {label}") for panel in panels]


def _sum(ticks: Lines, field: str) -> str:
    return ticks.sum(field, SPAN, _BY)


def compare_rates() -> Panel:
    """The rates of both runs."""
    return _build_overlay(
        "Rate, per second",
        "Requests that ended",
        [f"({_sum(ticks, 'requests_ended')} / {_sum(ticks, 'seconds')})" for ticks in _TICKS],
        "locale",
        Exactness.SERIES,
    )


def compare_failures() -> Panel:
    """The failures of both runs."""
    return _build_overlay(
        "Not ok, per second",
        "Requests that ended with an outcome other than `ok`",
        [
            f"(({_sum(ticks, 'requests_ended')} - {_sum(ticks, Outcome.OK)}) / {_sum(ticks, 'seconds')})"
            for ticks in _TICKS
        ],
        "locale",
        Exactness.SERIES,
    )


def compare_quantile(name: str) -> Panel:
    """A quantile of both runs."""
    return _build_overlay(
        LATENCIES[name],
        f"The {LATENCIES[name]} of the responses, of each step the largest of its seconds",
        [ticks.max(f"{name}_ms", SPAN, _BY) for ticks in _TICKS],
        "ms",
        Exactness.PROGRESS,
    )


def _build_overlay(title: str, shows: str, exprs: Sequence[str], unit: str, exactness: Exactness) -> Panel:
    """Both runs in one bar for each step: what both have, and on top what one has more than the other."""
    a, b = exprs
    return bar_chart(
        key=_SINCE,
        title=title,
        shows=f"{shows}, by time since the start of each run, without pauses. Grey is what both runs have;"
        " on top of it is what A or B has more. If a bar has only one colour, the other run had ended or had"
        " nothing.",
        exactness=exactness,
        queries={
            "both": f"({a} <= {b}) or ({b} < {a})",
            "A more": f"({a} - {b} > 0) or ({a} unless {b}) or ({a} * 0)",
            "B more": f"({b} - {a} > 0) or ({b} unless {a}) or ({b} * 0)",
        },
        unit=unit,
        decimals=1,
        no_value=_MISSING,
    ).colour({"both": FAINT, "A more": PLAIN, "B more": CAUTION})


def build_events_of(whose: str, label: str) -> Panel:
    """The events of one of the runs."""
    events = Lines(whose, LineKind.EVENT, needs=("type", "text"))
    return logs(
        title=f"Events of {label}",
        shows="Everything that happened to the run, newest first.",
        exactness=Exactness.RECORDED,
        queries={"": events.write("type", "text")},
        most_lines=200,
        no_value="no events in the time range",
    )


def compare_throughputs() -> Panel:
    """How much the throughputs differ."""
    a, b = (
        f"({ticks.max('accounted', SPAN)} / {ticks.max('active_s', SPAN)})"
        for ticks in (Lines(RUN_A, LineKind.TICK), Lines(RUN_B, LineKind.TICK))
    )
    return stat(
        title="Throughput of A compared with B",
        shows="How many more requests per active second A accounted for than B.",
        exactness=Exactness.LEDGER,
        queries={"throughput": f"{a} / {b} - 1"},
        unit="percentunit",
        decimals=1,
        width=5,
        no_value=_MISSING,
        defaults=by_threshold({-_NOTABLE: PLAIN, _NOTABLE: GOOD}, CAUTION),
    )


def compare_latencies() -> Panel:
    """How much the latencies differ."""
    a, b = Lines(RUN_A, LineKind.SUMMARY), Lines(RUN_B, LineKind.SUMMARY)
    return stat(
        title="Latency of A compared with B",
        shows="How much longer the latencies of A are than those of B, over all answered requests, from"
        " the latest summaries.",
        exactness=Exactness.EXACT,
        queries={
            name: f"{a.last(f'latency_ms.{key}', SPAN)} / {b.last(f'latency_ms.{key}', SPAN)} - 1"
            for key, name in LATENCIES.items()
            if key != "min"
        },
        unit="percentunit",
        decimals=1,
        width=19,
        no_value=f"{_MISSING}; available when both are at rest",
        defaults=by_threshold({-_NOTABLE: PLAIN, _NOTABLE: CAUTION}, GOOD),
    )

"""Oku / Compare: two runs side by side, and what changed between them."""

from collections.abc import Sequence
from dataclasses import replace

from oku_coordinator.ledger.outbox_table import Kind
from oku_dashboards.account import LATENCIES, Account
from oku_dashboards.course import Course
from oku_dashboards.dashboard import (
    Dashboard,
    Row,
    build_annotations,
    build_name_variable,
    build_run_variable,
)
from oku_dashboards.logql import SPAN, Lines
from oku_dashboards.palette import CAUTION, GOOD, PLAIN
from oku_dashboards.panel import Exactness, Panel, Query, by_threshold, stat

_RUN_A, _RUN_B = 'run="$run_a"', 'run="$run_b"'
_BOTH = 'run=~"$run_a|$run_b"'
_NOTABLE = 0.05
"""A change by less than this has no colour."""


def build() -> Dashboard:
    """The dashboard."""
    a, b = Course(_RUN_A, " of A"), Course(_RUN_B, " of B")
    return Dashboard(
        uid="oku-compare",
        run="run_a",
        description="Two runs side by side, A left and B right; what A changed against B above. Choose a"
        " time range that holds both.",
        variables=[
            build_name_variable(),
            build_run_variable("run_a", "Run A"),
            build_run_variable("run_b", "Run B", other_than="run_a"),
        ],
        annotations=build_annotations(Lines(_BOTH, Kind.EVENT)),
        rows=[
            Row("", [_build_throughput_change(), _build_latency_changes()]),
            Row("Account", [*_build_account(a), *_build_account(b)]),
            Row("Latency of the whole run", [_build_latencies(a), _build_latencies(b)]),
            Row("Rate", [a.build_rate(), b.build_rate()]),
            Row("Outcomes", [a.build_outcomes(), b.build_outcomes(), a.build_failures(), b.build_failures()]),
            Row(
                "Latencies", [a.build_quantiles(), b.build_quantiles(), a.build_heatmap(), b.build_heatmap()]
            ),
        ],
    )


def _build_account(course: Course) -> Sequence[Panel]:
    account = Account(course.whose)
    panels = (
        account.build_state(width=2),
        account.build_account(("requests", "accounted", "resent at most", "throughput"), width=7),
        account.build_failures(width=3),
    )
    return [replace(panel, title=f"{panel.title}{course.label}") for panel in panels]


def _build_latencies(course: Course) -> Panel:
    panel = Account(course.whose).build_latencies()
    return replace(panel, title=f"{panel.title}{course.label}")


def _build_throughput_change() -> Panel:
    a, b = (
        f"({ticks.max('accounted', SPAN)} / {ticks.max('active_s', SPAN)})"
        for ticks in (Lines(_RUN_A, Kind.TICK), Lines(_RUN_B, Kind.TICK))
    )
    return stat(
        title="Throughput of A against B",
        shows="By how much A accounted for more requests in a second of its active time than B.",
        exactness=Exactness.LEDGER,
        queries=[Query(f"{a} / {b} - 1", "throughput", is_instant=True)],
        unit="percentunit",
        decimals=1,
        width=5,
        no_value="choose two runs",
        defaults=by_threshold({-_NOTABLE: PLAIN, _NOTABLE: GOOD}, CAUTION),
    )


def _build_latency_changes() -> Panel:
    a, b = Lines(_RUN_A, Kind.SUMMARY), Lines(_RUN_B, Kind.SUMMARY)
    return stat(
        title="Latency of A against B",
        shows="By how much the latencies of A are longer than those of B, of all answered requests, from"
        " the latest summaries.",
        exactness=Exactness.EXACT,
        queries=[
            Query(f"{a.last(field, SPAN)} / {b.last(field, SPAN)} - 1", name, is_instant=True)
            for field, name in (
                (f"latency_ms.{key}", name) for key, name in LATENCIES.items() if key != "min"
            )
        ],
        unit="percentunit",
        decimals=1,
        width=19,
        no_value="comes when both runs are at rest",
        defaults=by_threshold({-_NOTABLE: PLAIN, _NOTABLE: CAUTION}, GOOD),
    )

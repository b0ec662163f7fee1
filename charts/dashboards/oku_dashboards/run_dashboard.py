"""The dashboard Oku / Run: how a run is going, its results, and its events."""

from oku_core.results.lines import LineKind
from oku_dashboards import group_panels, rate_panels
from oku_dashboards import time_series_panels as series
from oku_dashboards.grafana.colours import VERDICT_COLOURS
from oku_dashboards.grafana.dashboard import (
    Dashboard,
    DashboardRow,
    build_annotations,
    build_name_variable,
    build_run_variable,
)
from oku_dashboards.grafana.logql import ALL_RUNS, MILLISECONDS, ONE_RUN, SPAN, Lines
from oku_dashboards.grafana.panel import Exactness, Panel, override
from oku_dashboards.grafana.visualizations import NOTHING, logs, table
from oku_dashboards.stat_panels import StatPanels, build_value_mapping

_MOST_RUNS = 100
_NARROW = 150
"""How wide the columns of a table are that leave the rest to one of long texts, in pixels."""
_MARGIN_MS = 30_000
"""A link to a run shows this much before its first and after its last range."""


def build_run_dashboard() -> Dashboard:
    """The dashboard."""
    stats = StatPanels()
    return Dashboard(
        uid="oku-run",
        description="One run: how it is going, its account, its latencies and its events. The runs listed are"
        " those with lines in the time range; the table at the bottom links to each of them.",
        variables=[build_name_variable(), build_run_variable(), group_panels.build_variable()],
        annotations=build_annotations(Lines(ONE_RUN, LineKind.EVENT)),
        rows=[
            DashboardRow(
                "",
                [
                    stats.build_head().wide(16),
                    stats.build_state().wide(4),
                    stats.build_verdict().wide(4),
                    stats.build_progress().wide(4),
                    stats.build_accounted().wide(4),
                    stats.build_rate().wide(4),
                    stats.build_failures().wide(4),
                    stats.build_p99().wide(4),
                    stats.build_time_left().wide(4),
                ],
            ),
            DashboardRow("Account", [stats.build_account().wide(16), stats.build_sums().wide(8)]),
            DashboardRow(
                "Over time",
                [
                    series.build_rate(),
                    series.build_in_flight(),
                    series.build_outcomes_panel(),
                    series.build_failures_panel(),
                    series.build_quantiles(),
                    series.build_heatmap_panel(),
                    series.build_statuses_panel(),
                    series.build_bytes(),
                ],
            ),
            DashboardRow(
                "The run as a whole",
                [
                    stats.build_latencies().wide(20),
                    stats.build_queued().wide(4),
                    stats.build_outcomes().wide(8),
                    stats.build_statuses().wide(6),
                    _build_validity(),
                    _build_thresholds(),
                    _build_failures(),
                ],
            ),
            DashboardRow(
                "For runs with a rate, or with phases",
                [
                    rate_panels.build_plan_panel(),
                    rate_panels.build_sent(),
                    rate_panels.build_unsent(),
                    rate_panels.build_response_times(),
                    rate_panels.build_latenesses(),
                    rate_panels.build_totals(
                        "response_time_ms",
                        "Response time of the whole run",
                        "From when requests were due to the end of their responses",
                    ),
                    rate_panels.build_totals(
                        "lateness_ms",
                        "Lateness of the whole run",
                        "From when requests were due to when they were sent",
                    ),
                    rate_panels.build_punctuality(),
                    rate_panels.build_unsent_totals(),
                    rate_panels.build_phases_panel(),
                ],
            ),
            DashboardRow(
                "For runs that name their targets",
                group_panels.build_target_panels(),
            ),
            DashboardRow(
                "For runs of user code",
                group_panels.build_inner_panels(),
            ),
            DashboardRow("Events", [_build_events()]),
            DashboardRow("Runs in the time range", [_build_runs()]),
        ],
    )


def _build_validity() -> Panel:
    flags = Lines(ONE_RUN, LineKind.EVENT, where='type="validity"', needs=("type", "text"))
    return logs(
        title="Validity flags",
        shows="What may make the results misleading, in a sentence each, as of each time the run came to"
        " rest. No flag is good news.",
        exactness=Exactness.RECORDED,
        queries={"": flags.write("text")},
        most_lines=100,
        width=10,
        no_value="no flags; they are written when the run comes to rest",
    )


def _build_thresholds() -> Panel:
    thresholds = Lines(ONE_RUN, LineKind.THRESHOLD)
    by = ("expression", "verdict", "unit")
    newest = f"topk by (expression) (1, {thresholds.latest_at(SPAN, by)})"
    columns = {name: thresholds.last(name, SPAN, by) for name in ("value", "limit", "against", "allowed")}
    return table(
        key="expression",
        labels=by[1:],
        sort_by="expression",
        is_rising=True,
        title="Thresholds",
        shows="What became of each threshold, from the latest time that the run came to rest: its value and"
        " its limit, and how many requests count against it and how many may.",
        exactness=Exactness.EXACT,
        queries={name: f"{expr} and on (expression, verdict) {newest}" for name, expr in columns.items()},
        unit="string",
        width=24,
        height=6,
        no_value="the run has no thresholds, or is not at rest",
        overrides=[
            override(
                "verdict",
                mappings=[build_value_mapping(VERDICT_COLOURS)],
                color={"mode": "thresholds"},
                custom_cellOptions={"type": "color-text"},
            ),
            *(override(name, unit="locale", decimals=0) for name in ("against", "allowed")),
            *(override(name, noValue=NOTHING, custom_width=_NARROW) for name in (*by[1:], *columns)),
        ],
    )


def _build_failures() -> Panel:
    failures = Lines(ONE_RUN, LineKind.FAILURE)
    by = ("outcome", "reason", "target", "request")
    fields = ("requests", "first_index", "last_index")
    columns = {name.replace("_", " "): failures.last(name, SPAN, by) for name in fields}
    return table(
        key="outcome",
        labels=by[1:],
        sort_by="requests",
        title="What failed, and why",
        shows="The requests that were not ok by outcome and reason, the most frequent first, with the lowest"
        " and the highest index of each, from the latest time that the run came to rest; their target if the"
        " run names its targets. Those with a request are not in the account: user code has made them within"
        " iterations of these indices.",
        exactness=Exactness.EXACT,
        queries=columns,
        unit="locale",
        decimals=0,
        width=24,
        no_value="nothing failed, or the run is not at rest",
        overrides=[
            override(name, custom_width=_NARROW) for name in ("outcome", "target", "request", *columns)
        ],
    )


def _build_events() -> Panel:
    events = Lines(ONE_RUN, LineKind.EVENT, needs=("type", "text"))
    return logs(
        title="Events",
        shows="Everything that happened to the run, newest first.",
        exactness=Exactness.RECORDED,
        queries={"": events.write("type", "text")},
        most_lines=500,
        width=24,
        height=10,
        no_value="no events in the time range",
    )


def _build_runs() -> Panel:
    ranges = Lines(ALL_RUNS, LineKind.RANGE)
    by = ("run", "name")
    newest = f"topk({_MOST_RUNS}, {ranges.latest_at(SPAN, by, MILLISECONDS)})"
    chosen = f"and on (run) {newest}"
    link = {
        "title": "Show this run",
        "url": "/d/oku-run?var-run=${__data.fields.run}&var-datasource=${datasource}"
        '&from=${__data.fields["Value #A"].numeric}&to=${__data.fields["Value #B"].numeric}',
        "targetBlank": False,
    }
    return table(
        key="run",
        sort_by="run",
        title="Runs",
        shows=f"The {_MOST_RUNS} newest runs that accounted for requests in the time range. Click a run to"
        " show it, with its own time range.",
        exactness=Exactness.EXACT,
        queries={
            "from": f"{ranges.earliest_at(SPAN, by, MILLISECONDS)} - {_MARGIN_MS} {chosen}",
            "to": f"{newest} + {_MARGIN_MS}",
            "accounted": f"{ranges.sum('requests', SPAN, by)} {chosen}",
            "ok": f"{ranges.sum('ok', SPAN, by)} {chosen}",
        },
        unit="locale",
        width=24,
        height=8,
        no_value="no runs in the time range",
        overrides=[
            override("run", links=[link]),
            override("from", unit="dateTimeAsIso"),
            override("to", unit="dateTimeAsIso"),
        ],
    )

"""All dashboards, row by row, with every panel by name; and the files that they become."""

import json
from pathlib import Path

from oku_core.results.lines import LineKind
from oku_dashboards import compare_panels, group_panels, rate_panels, run_panels
from oku_dashboards import coverage_panels as coverage
from oku_dashboards import time_series_panels as series
from oku_dashboards import worker_panels as workers
from oku_dashboards.grafana.dashboard import (
    Dashboard,
    DashboardRow,
    build_annotations,
    build_choice_variable,
    build_name_variable,
    build_run_variable,
    build_text_variable,
)
from oku_dashboards.grafana.logql import ONE_RUN, Lines
from oku_dashboards.stat_panels import StatPanels

FOLDER = Path(__file__).parents[2] / "oku" / "dashboards"
_EVENTS = Lines(ONE_RUN, LineKind.EVENT)


def build_files() -> dict[Path, str]:
    """The JSON of every dashboard by the path of its file."""
    return {
        FOLDER / f"{dashboard.uid}.json": json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False) + "\n"
        for dashboard in (build_run(), build_workers(), build_coverage_dashboard(), build_compare())
    }


def build_run() -> Dashboard:
    """Oku / Run: the progress of a run, its results, and its events."""
    stats = StatPanels()
    return Dashboard(
        uid="oku-run",
        description="One run: how it is going, its account, its latencies and its events. The runs listed are"
        " those with lines in the time range; the table at the bottom links to each of them.",
        variables=[build_name_variable(), build_run_variable(), group_panels.build_variable()],
        annotations=build_annotations(_EVENTS),
        rows=[
            DashboardRow(
                "",
                stats.build_head().wide(16),
                stats.build_state().wide(4),
                stats.build_verdict().wide(4),
                stats.build_progress().wide(4),
                stats.build_accounted().wide(4),
                stats.build_rate().wide(4),
                stats.build_failures().wide(4),
                stats.build_p99().wide(4),
                stats.build_time_left().wide(4),
            ),
            DashboardRow("Account", stats.build_account().wide(16), stats.build_sums().wide(8)),
            DashboardRow(
                "Over time",
                series.build_rate_panel(),
                series.build_in_flight_panel(),
                series.build_outcomes_panel(),
                series.build_failures_panel(),
                series.build_quantiles_panel(),
                series.build_heatmap_panel(),
                series.build_statuses_panel(),
                series.build_bytes_panel(),
            ),
            DashboardRow(
                "The run as a whole",
                stats.build_latencies().wide(20),
                stats.build_queued().wide(4),
                stats.build_outcomes().wide(8),
                stats.build_statuses().wide(6),
                run_panels.build_validity_panel(),
                run_panels.build_thresholds_panel(),
                run_panels.build_reasons_panel(),
            ),
            DashboardRow(
                "For runs with a rate, or with phases",
                rate_panels.build_plan_panel(),
                rate_panels.build_sent_panel(),
                rate_panels.build_unsent_panel(),
                rate_panels.build_response_times_panel(),
                rate_panels.build_latenesses_panel(),
                rate_panels.build_response_time_totals_panel(),
                rate_panels.build_lateness_totals_panel(),
                rate_panels.build_punctuality_panel(),
                rate_panels.build_unsent_totals_panel(),
                rate_panels.build_phases_panel(),
            ),
            DashboardRow(
                "For runs that name their targets",
                group_panels.TARGETS.build_requests(),
                group_panels.TARGETS.build_share(),
                group_panels.TARGETS.build_quantile("p50_ms", "p50"),
                group_panels.TARGETS.build_quantile("p99_ms", "p99"),
                group_panels.build_target_table_panel(),
            ),
            DashboardRow(
                "For runs of user code",
                group_panels.NAMES.build_requests(),
                group_panels.NAMES.build_share(),
                group_panels.NAMES.build_quantile("p50_ms", "p50"),
                group_panels.NAMES.build_quantile("p99_ms", "p99"),
                group_panels.build_inner_table_panel(),
            ),
            DashboardRow("Events", run_panels.build_events_panel()),
            DashboardRow("Runs in the time range", run_panels.build_runs_panel()),
        ],
    )


def build_workers() -> Dashboard:
    """Oku / Workers: the work of each worker, its load, and which workers were lost."""
    return Dashboard(
        uid="oku-workers",
        description="The workers of one run: their share of it, how busy they were, and which were lost.",
        variables=[
            build_name_variable(),
            build_run_variable(),
            build_text_variable(
                "worker",
                "Worker",
                ".+",
                "A regular expression for the names of workers. With more than 500 workers it must match"
                " fewer: Loki returns no more series at once.",
            ),
            build_choice_variable(
                "top",
                "Workers shown",
                ["20", "50", "100"],
                "How many workers a panel over time shows at a time.",
            ),
        ],
        annotations=build_annotations(_EVENTS),
        rows=[
            DashboardRow(
                "",
                workers.build_living_panel(),
                workers.build_lost_panel(),
                workers.build_taken_back_panel(),
                workers.build_lag_panel(),
                workers.build_busy_panel(),
            ),
            DashboardRow(
                "Workers over time",
                workers.build_worker_rates_panel(),
                workers.build_worker_in_flight_panel(),
                workers.build_cpu_panel(),
                workers.build_memory_panel(),
                workers.build_lags_panel(),
                workers.build_worker_latencies_panel(),
            ),
            DashboardRow(
                "For runs with a rate", workers.build_lateness_panel(), workers.build_clock_bound_panel()
            ),
            DashboardRow("Totals", workers.build_table_panel(), workers.build_ranges_panel()),
            DashboardRow("Events", workers.build_worker_events_panel()),
        ],
    )


def build_coverage_dashboard() -> Dashboard:
    """Oku / Coverage: the request space as a picture."""
    stats = StatPanels()
    return Dashboard(
        uid="oku-coverage",
        description="The request space of one run in 50 equal parts: what is accounted for, leased to"
        " workers, still pending, and what may have been sent again.",
        variables=[build_name_variable(), build_run_variable()],
        annotations=build_annotations(_EVENTS),
        rows=[
            DashboardRow(
                "",
                stats.build_state().wide(3),
                stats.build_progress().wide(3),
                stats.build_account().wide(18),
            ),
            DashboardRow("The request space now", coverage.build_now_panel()),
            DashboardRow(
                "Over time",
                coverage.build_totals_panel(),
                coverage.build_map_panel("accounted"),
                coverage.build_map_panel("again"),
                coverage.build_map_panel("leased"),
                coverage.build_map_panel("pending"),
            ),
        ],
    )


def build_compare() -> Dashboard:
    """Oku / Compare: two runs, their differences, and both since their start."""
    return Dashboard(
        uid="oku-compare",
        run="run_a",
        shows_last="1h",  # two runs are seldom within a few minutes
        description="Two runs: how A differs from B, their accounts, and both on a common axis of time since"
        " their start. Choose a time range that holds both runs.",
        variables=[
            build_name_variable(),
            build_run_variable("run_a", "Run A"),
            build_run_variable("run_b", "Run B", other_than="run_a"),
            build_choice_variable(
                "step",
                "Seconds per bar",
                ["5", "1", "10", "60", "600"],
                "How long a bar of the charts since the start is. Loki returns at most 500 bars.",
            ),
        ],
        rows=[
            DashboardRow("", compare_panels.compare_throughputs(), compare_panels.compare_latencies()),
            DashboardRow("Run A", *compare_panels.build_account_of(compare_panels.RUN_A, "A")),
            DashboardRow("Run B", *compare_panels.build_account_of(compare_panels.RUN_B, "B")),
            DashboardRow(
                "Since the start",
                compare_panels.compare_rates(),
                compare_panels.compare_failures(),
                compare_panels.compare_quantile("p50"),
                compare_panels.compare_quantile("p90"),
                compare_panels.compare_quantile("p99"),
                compare_panels.compare_quantile("p99_9"),
            ),
            DashboardRow(
                "Events",
                compare_panels.build_events_of(compare_panels.RUN_A, "A"),
                compare_panels.build_events_of(compare_panels.RUN_B, "B"),
            ),
        ],
    )

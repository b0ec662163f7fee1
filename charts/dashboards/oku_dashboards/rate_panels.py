"""Panels of runs with a rate: the plan and how it was kept, response times, latenesses, and phases."""

from oku_core.accounting.outcome import NOT_SENT_CAUSES, Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import (
    CAUSE_COLOURS,
    CAUTION,
    FAINT,
    GOOD,
    OUTCOME_COLOURS,
    PLAIN,
    QUANTILE_COLOURS,
)
from oku_dashboards.grafana.logql import MILLISECONDS, ONE_RUN, SPAN, STEP, Lines, rate
from oku_dashboards.grafana.panel import Exactness, Panel, by_threshold, override
from oku_dashboards.grafana.visualizations import BARS, LOGARITHMIC, PLAN, bar_gauge, lines, stat, table
from oku_dashboards.stat_panels import AT_REST, LATENCIES, PER_SECOND

NO_RATE = "this run has no rate"
PLANNED = "planned"
QUANTILE_NAMES = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p99_9_ms": "p99.9"}
"""The fields of a tick, and how they are shown."""
_TOTALS = ("mean", "p50", "p90", "p99", "p99_9", "max")
_BY = ("phase",)
_RATES = ("planned/s", "sent/s", "completed/s")
_ticks = Lines(ONE_RUN, LineKind.TICK)
_ranges = Lines(ONE_RUN, LineKind.RANGE)


def build_sent_panel() -> Panel:
    """Requests sent, with the plan behind them."""
    planned = rate(_ticks, "requests_planned")
    panel = lines(
        title="Sent and planned",
        shows="Requests sent per second, and behind them the plan. Random arrivals are planned as if they"
        " were even.",
        exactness=Exactness.SERIES,
        queries={PLANNED: planned, "sent": f"{rate(_ticks, 'requests_sent')} and {planned}"},
        unit="reqps",
        no_value=NO_RATE,
    )
    return draw_plan(panel.colour({"sent": PLAIN}))


def draw_plan(panel: Panel) -> Panel:
    """The panel with its plan as a broad line behind all else."""
    return panel.add([override(PLANNED, colour=FAINT, **PLAN)])


def build_plan_panel() -> Panel:
    """How a run kept to its plan."""
    summaries = Lines(ONE_RUN, LineKind.SUMMARY)
    planned = summaries.last("planned_rps", SPAN)
    figures = {
        "planned": planned,
        "sent": f"{summaries.last('throughput_rps', SPAN)} and {planned}",
        "completed": f"{summaries.last('completed_rps', SPAN)} and {planned}",
        "seconds off the plan": summaries.last("plan.off_seconds", SPAN),
        "share of the seconds": summaries.last("plan.off_share", SPAN),
        "requests missed in them": summaries.last("plan.missed", SPAN),
    }
    return stat(
        title="Plan of the whole run",
        shows="The mean rates that were planned, sent and completed, without the warm-up; in how many seconds"
        " more than 1 %, and more than one request, were sent beside the plan, which share of the seconds"
        " that is, and how many requests that were due in them were not sent in them. From the latest"
        " summary; the flag `off_plan` says why.",
        exactness=Exactness.EXACT,
        queries=figures,
        unit="locale",
        decimals=0,
        no_value=f"{NO_RATE}, or is not at rest",
        overrides=[
            *(override(name, unit=PER_SECOND, decimals=1) for name in ("planned", "sent", "completed")),
            override(
                "share of the seconds", unit="percentunit", decimals=1, **by_threshold({1e-12: CAUTION}, GOOD)
            ),
        ],
        width=24,
    )


def build_unsent_panel() -> Panel:
    """Requests that were not sent, by cause, and those that were lost."""
    panel = lines(
        custom=BARS,
        table=("sum",),
        title="Not sent, and lost",
        shows="Requests that were not sent, by cause, and those that were lost with their worker, when the"
        " ledger accounted for them: `in_flight_cap`, as many requests as allowed were in flight when it was"
        " due; `late`, its worker was late for another reason; `not_dealt`, no worker had it.",
        exactness=Exactness.EXACT,
        queries=_query_unsent(STEP),
        unit="locale",
        min_step="10s",
        no_value="nothing accounted yet",
    )
    return _colour_unsent(panel)


def build_unsent_totals_panel() -> Panel:
    """The same of the whole run."""
    panel = bar_gauge(
        title="Not sent in the whole run",
        shows="The accounted requests that were not sent, by cause, and those that were lost.",
        exactness=Exactness.EXACT,
        queries=_query_unsent(SPAN),
        unit="locale",
        decimals=0,
        no_value="nothing accounted yet",
    )
    return _colour_unsent(panel)


def _query_unsent(window: str) -> dict[str, str]:
    causes: dict[str, str] = {cause: _ranges.sum(f"not_sent_{cause}", window) for cause in NOT_SENT_CAUSES}
    return causes | {Outcome.LOST: _ranges.sum(Outcome.LOST, window)}


def _colour_unsent(panel: Panel) -> Panel:
    causes = {str(cause): colour for cause, colour in CAUSE_COLOURS.items()}
    return panel.colour({**causes, Outcome.LOST: OUTCOME_COLOURS[Outcome.LOST]})


def build_response_times_panel() -> Panel:
    """Response times over time."""
    return _build_quantiles(
        "response_time",
        "Response time quantiles",
        "From when requests were due to the end of their responses: with what the plan waited for a slow"
        " target, which latencies leave out.",
    )


def build_latenesses_panel() -> Panel:
    """Latenesses over time."""
    return _build_quantiles(
        "lateness", "Lateness quantiles", "From when requests were due to when they were sent."
    )


def _build_quantiles(prefix: str, title: str, shows: str) -> Panel:
    return lines(
        custom=LOGARITHMIC,
        title=title,
        shows=f"{shows} Quantiles of each second, from the merged histogram of all workers; if a step is"
        " longer than a second, the largest of its seconds.",
        exactness=Exactness.PROGRESS,
        queries={name: _ticks.max(f"{prefix}_{field}", STEP) for field, name in QUANTILE_NAMES.items()},
        unit="ms",
        no_value=NO_RATE,
    ).colour({name: QUANTILE_COLOURS[field] for field, name in QUANTILE_NAMES.items()})


def build_punctuality_panel() -> Panel:
    """Reasons for early or late arrivals other than the target."""
    return lines(
        custom={"fillOpacity": 0},
        table=("max",),
        title="Clock bound and event loop lag",
        shows="By how much the coordinator's clock, by which requests are due, may be wrong at most as the"
        " worker knows it that knows it worst (0 on one machine), and the largest lateness of any worker's"
        " event loop: the largest of each step. Neither comes from the target.",
        exactness=Exactness.PROGRESS,
        queries={
            "clock bound": _ticks.max("clock_bound_s", STEP),
            "event loop lag": _ticks.max("lag_s", STEP),
        },
        unit="s",
    ).colour({"clock bound": CAUTION, "event loop lag": PLAIN})


def build_response_time_totals_panel() -> Panel:
    """Response times of the whole run."""
    return _build_totals(
        "response_time_ms",
        "Response time of the whole run",
        "From when requests were due to the end of their responses",
    )


def build_lateness_totals_panel() -> Panel:
    """Latenesses of the whole run."""
    return _build_totals(
        "lateness_ms", "Lateness of the whole run", "From when requests were due to when they were sent"
    )


def _build_totals(field: str, title: str, shows: str) -> Panel:
    summaries = Lines(ONE_RUN, LineKind.SUMMARY)
    return stat(
        title=title,
        shows=f"{shows}; of all phases but the warm-up, from the latest summary, which is written whenever"
        " the run comes to rest.",
        exactness=Exactness.EXACT,
        queries={LATENCIES[name]: summaries.last(f"{field}.{name}", SPAN) for name in _TOTALS},
        unit="ms",
        no_value=f"{NO_RATE}, or is not at rest",
    )


def build_phases_panel() -> Panel:
    """A row for each phase."""
    ranges = Lines(ONE_RUN, LineKind.RANGE, where='phase != ""', needs=_BY)
    phases = Lines(ONE_RUN, LineKind.PHASE)
    began = ranges.earliest_at(SPAN, _BY, MILLISECONDS)
    unsent = [ranges.sum(outcome, SPAN, _BY) for outcome in (Outcome.NOT_SENT, Outcome.LOST)]
    requests, ok = ranges.sum("requests", SPAN, _BY), ranges.sum(Outcome.OK, SPAN, _BY)
    columns = {
        "first accounted": began,
        "due": phases.last("due", SPAN, _BY),
        "accounted": requests,
        "ok": ok,
        "failed": " - ".join((requests, ok, *unsent)),
        "not sent": unsent[0],
        "lost": unsent[1],
        "completed": phases.last("completed", SPAN, _BY),
        "planned/s": phases.last("planned_rps", SPAN, _BY),
        "sent/s": phases.last("sent_rps", SPAN, _BY),
        "completed/s": phases.last("completed_rps", SPAN, _BY),
        "p50": phases.last("p50_ms", SPAN, _BY),
        "p99": phases.last("p99_ms", SPAN, _BY),
        "response time p99": phases.last("response_time_p99_ms", SPAN, _BY),
        "lateness p99": phases.last("lateness_p99_ms", SPAN, _BY),
    }
    milliseconds = ("p50", "p99", "response time p99", "lateness p99")
    return table(
        key="phase",
        sort_by="first accounted",
        is_rising=True,
        title="Phases",
        shows="What the ledger accounted for in each stage and in the warm-up. What was due, what was"
        " completed, that is answered in full, and how much of it was planned, sent and completed per second"
        f" of a phase, are {AT_REST}, and so are quantiles. Failed: sent, but not `ok`.",
        exactness=Exactness.EXACT,
        queries=columns,
        unit="locale",
        width=24,
        no_value="this run has no phases",
        overrides=[
            override("first accounted", unit="dateTimeAsIso", custom_width=170),
            *(override(name, unit="locale", decimals=1) for name in _RATES),
            *(override(name, unit="ms", custom_width=150) for name in milliseconds),
        ],
    )

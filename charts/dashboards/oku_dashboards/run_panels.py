"""Tables and lists of a run: flags, thresholds, failures, events, and the runs to choose from."""

from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import VERDICT_COLOURS
from oku_dashboards.grafana.logql import ALL_RUNS, MILLISECONDS, ONE_RUN, SPAN, Lines
from oku_dashboards.grafana.panel import Exactness, Panel, override
from oku_dashboards.grafana.visualizations import NOTHING, logs, table
from oku_dashboards.stat_panels import build_value_mapping

_MOST_RUNS = 100
_NARROW = 150
"""Column width of tables that leave the remaining space to a column of long texts, in pixels."""
_MARGIN_MS = 30_000
"""A link to a run shows this much before its first and after its last range."""


def build_validity_panel() -> Panel:
    """The validity flags of the run."""
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


def build_thresholds_panel() -> Panel:
    """A row for each threshold."""
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


def build_reasons_panel() -> Panel:
    """A row for each reason of failures."""
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


def build_events_panel() -> Panel:
    """The events of the run."""
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


def build_runs_panel() -> Panel:
    """A row for each run in the time range, with a link to it."""
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

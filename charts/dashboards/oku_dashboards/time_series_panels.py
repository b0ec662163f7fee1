"""Panels over time: the rate of a run, its outcomes, its latencies and its bytes, second by second."""

from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import (
    DUE_COLOURS,
    OUTCOME_COLOURS,
    PLAIN,
    QUANTILE_COLOURS,
    STATUS_COLOURS,
)
from oku_dashboards.grafana.logql import ONE_RUN, STEP, Lines, rate
from oku_dashboards.grafana.panel import Exactness, Panel, override
from oku_dashboards.grafana.visualizations import (
    BARS,
    DASHES,
    LOGARITHMIC,
    STACKED,
    heatmap,
    lines,
)
from oku_dashboards.rate_panels import PLANNED, QUANTILE_NAMES, draw_plan

_FAILURES = [outcome for outcome in OUTCOMES if outcome != Outcome.OK]
_DUE_NAMES = {"response_time_p99_ms": "response time p99", "lateness_p99_ms": "lateness p99"}
_STATUS_STEP = "10s"
"""Statuses come with ranges, which last about this long."""
_ticks = Lines(ONE_RUN, LineKind.TICK)


def build_rate_panel() -> Panel:
    """Requests per second, and the plan of a run with a rate behind them."""
    panel = lines(
        title="Rate",
        shows="Requests that ended per second. If a step is longer than a second, the mean. Behind"
        " them, in runs with a rate, the plan.",
        exactness=Exactness.SERIES,
        queries={
            PLANNED: rate(_ticks, "requests_planned"),
            "requests": rate(_ticks, "requests_ended"),
        },
        unit="reqps",
    ).colour({"requests": PLAIN})
    return draw_plan(panel)


def build_in_flight_panel() -> Panel:
    """Requests in flight, and workers."""
    workers = override("workers", colour="purple", unit="none", decimals=0, custom_axisPlacement="right")
    panel = lines(
        title="In flight",
        shows="Requests sent and not yet answered, over all workers (mean of the step), and the number"
        " of live workers (right axis, minimum of the step).",
        exactness=Exactness.PROGRESS,
        queries={"in flight": _ticks.mean("in_flight", STEP), "workers": _ticks.min("workers", STEP)},
    )
    return panel.colour({"in flight": PLAIN}).add([workers])


def build_outcomes_panel() -> Panel:
    """All outcomes, stacked."""
    return lines(
        custom=STACKED,
        title="Outcomes",
        shows="Requests that ended per second, stacked by outcome; those that were not sent, or are"
        " lost, count when that was found.",
        exactness=Exactness.SERIES,
        queries={outcome: rate(_ticks, outcome) for outcome in OUTCOMES},
        unit="reqps",
    ).colour({str(outcome): colour for outcome, colour in OUTCOME_COLOURS.items()})


def build_failures_panel() -> Panel:
    """All outcomes but `ok`, which would hide them."""
    return lines(
        title="Not ok",
        shows="The same without `ok`, so that a few failures among many requests stand out."
        " A run without failures shows zero.",
        exactness=Exactness.SERIES,
        queries={outcome: rate(_ticks, outcome) for outcome in _FAILURES},
        unit="reqps",
    ).colour({str(outcome): OUTCOME_COLOURS[outcome] for outcome in _FAILURES})


def build_quantiles_panel() -> Panel:
    """Quantiles over time; one each of the times that count from when requests were due."""
    panel = lines(
        custom=LOGARITHMIC,
        title="Latency quantiles",
        shows="Quantiles of each second, from the merged histogram of all workers. If a step is"
        " longer than a second, the largest of its seconds: quantiles cannot be added or averaged."
        " Dashed, in runs with a rate: response times and latenesses, which count from when requests were"
        " due.",
        exactness=Exactness.PROGRESS,
        queries={name: _ticks.max(field, STEP) for field, name in (QUANTILE_NAMES | _DUE_NAMES).items()},
        unit="ms",
        no_value="nothing was answered in the time range",
    ).colour({name: QUANTILE_COLOURS[field] for field, name in QUANTILE_NAMES.items()})
    return panel.add(
        override(name, colour=DUE_COLOURS[field], custom_lineStyle=DASHES)
        for field, name in _DUE_NAMES.items()
    )


def build_heatmap_panel() -> Panel:
    """Latencies as a heatmap."""
    return heatmap(
        title="Latencies",
        shows="How many responses took how long. Each row is a bucket, named by its upper bound;"
        " buckets that are empty in the whole time range have no row.",
        exactness=Exactness.PROGRESS,
        queries={"{{le}}": Lines(ONE_RUN, LineKind.LATENCY).sum("requests", STEP, ("le",))},
        # Ticks are not in step with the second: a step of two always holds one.
        min_step="2s",
        no_value="nothing was answered in the time range",
    )


def build_statuses_panel() -> Panel:
    """Statuses over time."""
    statuses = Lines(ONE_RUN, LineKind.STATUS).sum("requests", STEP, ("status",))
    panel = lines(
        custom=BARS,
        title="Statuses",
        shows="Responses per second by status code, at the time their range was accounted for. A range"
        " lasts about ten seconds.",
        exactness=Exactness.EXACT,
        queries={"{{status}}": f"{statuses} / ($__interval_ms / 1000)"},
        has_many=True,
        unit="reqps",
        min_step=_STATUS_STEP,
        no_value="no response was accounted for in the time range",
    )
    return panel.add(
        override(f"/{start}/", colour=colour, is_pattern=True) for start, colour in STATUS_COLOURS.items()
    )


def build_bytes_panel() -> Panel:
    """Bytes received per second."""
    return lines(
        title="Bytes received",
        shows="Bytes of response bodies per second, before decompression; 1 MB is 10⁶ bytes.",
        exactness=Exactness.PROGRESS,
        queries={"bytes": rate(_ticks, "bytes_received")},
        unit="Bps",
    ).colour({"bytes": PLAIN})

"""Panels of the workers: what each of them did, how busy it was, and which were lost."""

from collections.abc import Mapping
from dataclasses import replace

from oku_core.results.event import EventType
from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import BAD, CAUTION, FAINT, GOOD
from oku_dashboards.grafana.logql import ONE_RUN, SPAN, STEP, Lines
from oku_dashboards.grafana.panel import Exactness, Panel, by_threshold, override
from oku_dashboards.grafana.visualizations import BARS, DASHES, PALETTE, lines, logs, stat, table
from oku_dashboards.rate_panels import NO_RATE

WORKER_STEP = "5s"
"""With more than 100 workers, each has a line less often than once a second."""
_BY = ("worker",)
_NAMED = 'worker=~"$worker"'
_NAMED_LINES = Lines(ONE_RUN, LineKind.WORKER, where=_NAMED, needs=_BY)
_MOST_ROWS = 100
_NO_WORKERS = "no workers in the time range"
_EVENTS = (EventType.WORKER_JOINED, EventType.WORKER_LEFT, EventType.WORKER_LOST, EventType.LEASE_EXPIRED)


def build_living_panel() -> Panel:
    """The number of live workers."""
    return stat(
        title="Live workers",
        shows="The number of live workers, as of the latest tick.",
        exactness=Exactness.PROGRESS,
        queries={"workers": Lines(ONE_RUN, LineKind.TICK).last("workers", SPAN)},
        width=4,
    )


def build_lost_panel() -> Panel:
    """The number of workers lost."""
    return _build_count(
        EventType.WORKER_LOST,
        "Workers lost",
        "How many workers were declared dead while the run was active.",
        BAD,
    )


def build_taken_back_panel() -> Panel:
    """The number of leases taken back."""
    return _build_count(
        EventType.LEASE_EXPIRED,
        "Leases taken back",
        "How many leases were taken back, so that other workers could take their ranges.",
        CAUTION,
    )


def _build_count(type_: EventType, title: str, shows: str, colour: str) -> Panel:
    events = Lines(ONE_RUN, LineKind.EVENT, where=f'type="{type_}"', needs=("type",))
    return stat(
        title=title,
        shows=shows,
        exactness=Exactness.RECORDED,
        queries={title.lower(): f"{events.count(SPAN)} or vector(0)"},
        width=5,
        defaults=by_threshold({1: colour}, GOOD),
    )


def build_lag_panel() -> Panel:
    """The largest event loop lag of any worker."""
    return _build_worst(
        "max_lag_s",
        "Largest event loop lag",
        "The largest lag of any worker's event loop",
        "s",
        {0.1: CAUTION, 1: BAD},
    )


def build_busy_panel() -> Panel:
    """The busiest second of any worker."""
    return _build_worst(
        "busy_share",
        "Busiest second",
        "The largest share of a second in which a worker ran or waited for a processor. From 90 % on,"
        " latencies may be the worker's own",
        "percentunit",
        {0.9: CAUTION},
        decimals=0,
    )


def _build_worst(
    field: str,
    title: str,
    shows: str,
    unit: str,
    steps: Mapping[float, str],
    decimals: int | None = None,
) -> Panel:
    return stat(
        title=title,
        shows=f"{shows}, over all ranges.",
        exactness=Exactness.EXACT,
        queries={title.lower(): Lines(ONE_RUN, LineKind.RANGE).max(field, SPAN)},
        unit=unit,
        decimals=decimals,
        width=5,
        no_value="nothing accounted yet",
        defaults=by_threshold(steps, GOOD),
    )


def build_worker_rates_panel() -> Panel:
    """The rate of each worker."""
    rates = f"{_NAMED_LINES.sum('requests_ended', STEP, _BY)} / {_NAMED_LINES.sum('seconds', STEP, _BY)}"
    return _build_lines(
        "rate_rps", "Rate", "Requests that ended per second", "reqps", f"bottomk($top, {rates})"
    )


def build_worker_in_flight_panel() -> Panel:
    """Requests in flight by worker."""
    return _build_largest("in_flight", "In flight", "Requests sent and not yet answered", "short")


def build_cpu_panel() -> Panel:
    """CPU time by worker."""
    return _build_largest("cpu_share", "CPU", "CPU time per second; 100 % is one core", "percentunit")


def build_memory_panel() -> Panel:
    """Memory by worker."""
    return _build_largest("rss_mb", "Memory", "Resident memory; 1 MB is 10⁶ bytes", "decmbytes")


def build_lags_panel() -> Panel:
    """Event loop lag by worker."""
    return _build_largest("lag_s", "Event loop lag", "How late the worker's event loop was", "s")


def build_worker_latencies_panel() -> Panel:
    """Latencies by worker."""
    return _build_largest("p99_ms", "p99", "99 of 100 of its responses arrived within this time", "ms")


def build_lateness_panel() -> Panel:
    """Lateness by worker, in runs with a rate."""
    return _build_largest(
        "lateness_p99_ms",
        "Lateness p99",
        "99 of 100 of its requests were sent this long after they were due, or earlier",
        "ms",
        NO_RATE,
    )


def build_clock_bound_panel() -> Panel:
    """Bound of the clock's error by worker, in runs with a rate."""
    return _build_largest(
        "clock_bound_s",
        "Clock bound",
        "By how much the coordinator's clock, by which requests are due, may be wrong at most"
        " as the worker knows it; 0 on one machine",
        "s",
        NO_RATE,
    )


def _build_largest(field: str, title: str, shows: str, unit: str, no_value: str = _NO_WORKERS) -> Panel:
    largest = f"topk($top, {_NAMED_LINES.max(field, STEP, _BY)})"
    panel = _build_lines(field, title, f"{shows}; the largest in each step", unit, largest)
    return replace(panel, no_value=no_value)


def _build_lines(field: str, title: str, shows: str, unit: str, named: str) -> Panel:
    which = "largest" if named.startswith("topk") else "smallest"
    everyone = Lines(ONE_RUN, LineKind.WORKER)
    panel = lines(
        custom={"fillOpacity": 0},
        title=title,
        shows=f"{shows}. With many workers, those with the {which} values at each point in time. The dashed"
        " lines are the highest and the lowest value over all workers, however many there are.",
        exactness=Exactness.PROGRESS,
        queries={
            "{{worker}}": named,
            "highest": everyone.max(field, STEP),
            "lowest": everyone.min(field, STEP),
        },
        has_many=True,
        unit=unit,
        min_step=WORKER_STEP,
        defaults=PALETTE,
        no_value=_NO_WORKERS,
    )
    return panel.add(override(name, colour=FAINT, custom_lineStyle=DASHES) for name in ("highest", "lowest"))


def build_ranges_panel() -> Panel:
    """Accounted ranges by worker."""
    ranges = Lines(ONE_RUN, LineKind.RANGE, where=_NAMED, needs=_BY).count(STEP, _BY)
    return lines(
        custom=BARS,
        table=("sum",),
        title="Ranges accounted",
        shows="How many ranges of each worker were accounted for. With many workers, those with the most at"
        " each point in time.",
        exactness=Exactness.EXACT,
        queries={"{{worker}}": f"topk($top, {ranges})"},
        has_many=True,
        width=24,
        min_step="10s",
        defaults=PALETTE,
        no_value="nothing accounted yet",
    )


def build_table_panel() -> Panel:
    """A row for each worker."""
    ranges = Lines(ONE_RUN, LineKind.RANGE, where=_NAMED, needs=_BY)
    columns = {
        "requests": ranges.sum("requests", SPAN, _BY),
        "ranges": ranges.count(SPAN, _BY),
        "CPU time": ranges.sum("cpu_s", SPAN, _BY),
        "peak memory": ranges.max("peak_rss_mb", SPAN, _BY),
        "largest event loop lag": ranges.max("max_lag_s", SPAN, _BY),
        "busiest second": ranges.max("busy_share", SPAN, _BY),
        "largest p99 of a range": ranges.max("p99_ms", SPAN, _BY),
    }
    return table(
        key="worker",
        sort_by="requests",
        title="Totals per worker",
        shows=f"What each worker accounted for, and what its checkpoints say about it: the {_MOST_ROWS}"
        " largest values of each column.",
        exactness=Exactness.EXACT,
        queries={name: f"topk({_MOST_ROWS}, {expr})" for name, expr in columns.items()},
        unit="locale",
        width=24,
        height=10,
        no_value="nothing accounted yet",
        overrides=[
            override("CPU time", unit="s"),
            override("peak memory", unit="decmbytes"),
            override("largest event loop lag", unit="s"),
            override("busiest second", unit="percentunit", decimals=0),
            override("largest p99 of a range", unit="ms"),
        ],
    )


def build_worker_events_panel() -> Panel:
    """The events of workers and leases."""
    choice = f'type=~"{"|".join(_EVENTS)}"'
    events = Lines(ONE_RUN, LineKind.EVENT, where=choice, needs=("type", "text"))
    return logs(
        title="Workers and leases",
        shows="Workers that joined, left or were lost, and leases that were taken back, newest first.",
        exactness=Exactness.RECORDED,
        queries={"": events.write("type", "text")},
        most_lines=500,
        width=24,
        no_value="no events in the time range",
    )

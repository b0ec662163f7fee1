"""Panels of runs of user code: the requests that it makes within iterations, by name."""

from oku_core.accounting.outcome import Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.logql import ONE_RUN, SPAN, STEP, Lines
from oku_dashboards.panel import Exactness, Json, Panel, Query, override
from oku_dashboards.visualizations import BARS, LOGARITHMIC, lines, table

NO_NAMES = "this run makes no requests within iterations"
_BY = ("request",)
_STEP = "10s"
"""Ranges come when leases end, so a shorter step would have holes."""
_ranges = Lines(ONE_RUN, LineKind.INNER_RANGE, needs=_BY)
_names = Lines(ONE_RUN, LineKind.INNER, needs=_BY)
_PALETTE: Json = {"color": {"mode": "palette-classic"}}
_BESIDE = " They stand beside the account of the run, which counts iterations."


def build_requests() -> Panel:
    """How many requests of each name were counted."""
    return lines(
        custom={**BARS, "stacking": {"mode": "normal"}},
        table=("sum",),
        title="Requests by name",
        shows=f"Requests that user code has made, by name, when their leases ended.{_BESIDE}",
        exactness=Exactness.EXACT,
        queries=[Query(_ranges.sum("requests", STEP, _BY), "{{request}}")],
        has_many=True,
        unit="locale",
        min_step=_STEP,
        defaults=_PALETTE,
        no_value=NO_NAMES,
    )


def build_share() -> Panel:
    """Which share of them was ok."""
    share = f"{_ranges.sum(Outcome.OK, STEP, _BY)} / {_ranges.sum('requests', STEP, _BY)}"
    return lines(
        custom={"fillOpacity": 0},
        table=("min",),
        title="Share ok by name",
        shows="The share of the requests of each name that was ok.",
        exactness=Exactness.EXACT,
        queries=[Query(share, "{{request}}")],
        has_many=True,
        unit="percentunit",
        min_step=_STEP,
        defaults={"max": 1, **_PALETTE},
        no_value=NO_NAMES,
    )


def build_quantile(field: str, name: str) -> Panel:
    """A quantile of the latencies of each name."""
    return lines(
        custom=LOGARITHMIC,
        table=("max",),
        title=f"{name} by name",
        shows=f"The {name} of the latencies of each name in each lease that ended, from the histogram of"
        " the lease; of several leases in a step, the largest.",
        exactness=Exactness.EXACT,
        queries=[Query(_ranges.max(field, STEP, _BY), "{{request}}")],
        has_many=True,
        unit="ms",
        min_step=_STEP,
        defaults=_PALETTE,
        no_value=NO_NAMES,
    )


def build_table() -> Panel:
    """A row for each name."""
    requests, ok = _ranges.sum("requests", SPAN, _BY), _ranges.sum(Outcome.OK, SPAN, _BY)
    milliseconds = {"p50": "p50_ms", "p90": "p90_ms", "p99": "p99_ms", "max": "max_ms"}
    columns = {
        "counted": requests,
        "share ok": f"{ok} / {requests}",
        "failed": f"{requests} - {ok}",
        "received": _ranges.sum("bytes_received", SPAN, _BY),
        "per second": _names.last("rate_rps", SPAN, _BY),
        **{name: _names.last(field, SPAN, _BY) for name, field in milliseconds.items()},
    }
    return table(
        key="request",
        sort_by="counted",
        title="Requests of iterations",
        shows="What was counted of the requests of each name. Their rate and their quantiles are of all"
        f" phases but the warm-up, from the latest time that the run came to rest.{_BESIDE}",
        exactness=Exactness.EXACT,
        queries=[Query(expr, name, is_instant=True) for name, expr in columns.items()],
        unit="locale",
        width=24,
        no_value=NO_NAMES,
        overrides=[
            override("share ok", unit="percentunit", decimals=2),
            override("received", unit="decbytes"),
            override("per second", unit="locale", decimals=1),
            *(override(name, unit="ms") for name in milliseconds),
        ],
    )

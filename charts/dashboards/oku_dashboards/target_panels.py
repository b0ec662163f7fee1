"""Panels of runs that name their targets: requests, the share that was ok, and quantiles, by target."""

from oku_core.accounting.outcome import Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.dashboard import build_text_variable
from oku_dashboards.logql import ONE_RUN, SPAN, STEP, Lines
from oku_dashboards.panel import Exactness, Json, Panel, Query, override
from oku_dashboards.visualizations import BARS, LOGARITHMIC, lines, table

NO_TARGETS = "this run names no targets"
_BY = ("target",)
_CHOSEN = 'target=~"$target"'
_STEP = "10s"
"""Ranges come when leases end, so a shorter step would have holes."""
_ranges = Lines(ONE_RUN, LineKind.RANGE, where=_CHOSEN, needs=_BY)
_targets = Lines(ONE_RUN, LineKind.TARGET, where=_CHOSEN, needs=_BY)
_PALETTE: Json = {"color": {"mode": "palette-classic"}}
"""By the order of the names: Grafana gives names that are alike nearly the same colour."""


def build_variable() -> Json:
    """The variable that selects targets."""
    return build_text_variable(
        "target",
        "Target",
        ".+",
        "A regular expression for the names of targets; it applies to the panels by target.",
    )


def build_requests() -> Panel:
    """How many requests of each target were accounted for."""
    return lines(
        custom={**BARS, "stacking": {"mode": "normal"}},
        table=("sum",),
        title="Requests by target",
        shows="Requests of each target when the ledger accounted for them: when their leases ended.",
        exactness=Exactness.EXACT,
        queries=[Query(_ranges.sum("requests", STEP, _BY), "{{target}}")],
        has_many=True,
        unit="locale",
        min_step=_STEP,
        defaults=_PALETTE,
        no_value=NO_TARGETS,
    )


def build_share() -> Panel:
    """Which share of them was ok."""
    share = f"{_ranges.sum(Outcome.OK, STEP, _BY)} / {_ranges.sum('requests', STEP, _BY)}"
    return lines(
        custom={"fillOpacity": 0},
        table=("min",),
        title="Share ok by target",
        shows="The share of the accounted requests of each target that was ok; those that were not sent or"
        " are lost count as not ok.",
        exactness=Exactness.EXACT,
        queries=[Query(share, "{{target}}")],
        has_many=True,
        unit="percentunit",
        min_step=_STEP,
        defaults={"max": 1, **_PALETTE},
        no_value=NO_TARGETS,
    )


def build_quantile(field: str, name: str) -> Panel:
    """A quantile of the latencies of each target."""
    return lines(
        custom=LOGARITHMIC,
        table=("max",),
        title=f"{name} by target",
        shows=f"The {name} of the latencies of each target in each lease that ended, from the histogram of"
        " the lease; of several leases in a step, the largest.",
        exactness=Exactness.EXACT,
        queries=[Query(_ranges.max(field, STEP, _BY), "{{target}}")],
        has_many=True,
        unit="ms",
        min_step=_STEP,
        defaults=_PALETTE,
        no_value=NO_TARGETS,
    )


def build_table() -> Panel:
    """A row for each target."""
    requests, ok = _ranges.sum("requests", SPAN, _BY), _ranges.sum(Outcome.OK, SPAN, _BY)
    unsent = [_ranges.sum(outcome, SPAN, _BY) for outcome in (Outcome.NOT_SENT, Outcome.LOST)]
    milliseconds = {
        "p50": "p50_ms",
        "p90": "p90_ms",
        "p99": "p99_ms",
        "response time p99": "response_time_p99_ms",
        "lateness p99": "lateness_p99_ms",
    }
    columns = {
        "accounted": requests,
        "share ok": f"{ok} / {requests}",
        "failed": " - ".join((requests, ok, *unsent)),
        "not sent, or lost": " + ".join(unsent),
        "received": _ranges.sum("bytes_received", SPAN, _BY),
        "per second": _targets.last("rate_rps", SPAN, _BY),
        **{name: _targets.last(field, SPAN, _BY) for name, field in milliseconds.items()},
    }
    return table(
        key="target",
        sort_by="accounted",
        title="Targets",
        shows="What was accounted for of each target, at once. Its rate and its quantiles are of all phases"
        " but the warm-up, from the latest time that the run came to rest.",
        exactness=Exactness.EXACT,
        queries=[Query(expr, name, is_instant=True) for name, expr in columns.items()],
        unit="locale",
        width=24,
        no_value=NO_TARGETS,
        overrides=[
            override("share ok", unit="percentunit", decimals=2),
            override("received", unit="decbytes"),
            override("per second", unit="locale", decimals=1),
            *(override(name, unit="ms") for name in milliseconds),
        ],
    )

"""Panels of the requests of a run in groups: by target, or by the names that user code gives them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oku_core.accounting.outcome import Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.grafana.dashboard import build_text_variable
from oku_dashboards.grafana.logql import ONE_RUN, SPAN, STEP, Lines
from oku_dashboards.grafana.panel import Exactness, Json, Panel, override
from oku_dashboards.grafana.visualizations import BARS, LOGARITHMIC, PALETTE, lines, table

_CHOSEN = 'target=~"$target"'
_STEP = "10s"
"""Ranges come when leases end, so a shorter step would have holes."""
_BESIDE = " They stand beside the account of the run, which counts iterations."


@dataclass(frozen=True)
class GroupPanels:
    """The panels of one kind of groups.

    Attributes:
        label: the field of the lines that names the group.
        noun: names it in titles and sentences.
        ranges: the lines of ranges, by group.
        totals: the lines of the whole run, by group.
        requests_shown: the description of the panel of requests.
        share_shown: the description of the panel of the share that was ok.
        no_value: the text of a run without groups.
    """

    label: str
    noun: str
    ranges: Lines
    totals: Lines
    requests_shown: str
    share_shown: str
    no_value: str

    def build_requests(self) -> Panel:
        """How many requests of each group were counted."""
        return self._draw(
            self.ranges.sum("requests", STEP, self._by),
            custom={**BARS, "stacking": {"mode": "normal"}},
            table=("sum",),
            title=f"Requests by {self.noun}",
            shows=self.requests_shown,
            unit="locale",
        )

    def build_share(self) -> Panel:
        """Which share of them was ok."""
        ok, requests = (self.ranges.sum(field, STEP, self._by) for field in (Outcome.OK, "requests"))
        return self._draw(
            f"{ok} / {requests}",
            custom={"fillOpacity": 0},
            table=("min",),
            title=f"Share ok by {self.noun}",
            shows=self.share_shown,
            unit="percentunit",
            defaults={"max": 1, **PALETTE},
        )

    def build_quantile(self, field: str, name: str) -> Panel:
        """A quantile of the latencies of each group."""
        return self._draw(
            self.ranges.max(field, STEP, self._by),
            custom=LOGARITHMIC,
            table=("max",),
            title=f"{name} by {self.noun}",
            shows=f"The {name} of the latencies of each {self.noun} in each lease that ended, from the"
            " histogram of the lease; of several leases in a step, the largest.",
            unit="ms",
        )

    def _draw(self, expr: str, **settings: Any) -> Panel:
        """A line or a bar over time for each group."""
        usual: Json = {"defaults": PALETTE}
        return lines(
            exactness=Exactness.EXACT,
            queries={f"{{{{{self.label}}}}}": expr},
            has_many=True,
            min_step=_STEP,
            no_value=self.no_value,
            **usual | settings,
        )

    def build_table(self, counts: Mapping[str, str], times: Mapping[str, str], **settings: Any) -> Panel:
        """A row for each group.

        Args:
            counts: queries by the names of their columns; the first one sorts the rows.
            times: fields in milliseconds by the names of their columns.
            settings: of the panel.
        """
        return table(
            key=self.label,
            sort_by=next(iter(counts)),
            exactness=Exactness.EXACT,
            queries={
                **counts,
                "received": self.sum("bytes_received"),
                "per second": self.totals.last("rate_rps", SPAN, self._by),
                **{name: self.totals.last(field, SPAN, self._by) for name, field in times.items()},
            },
            unit="locale",
            width=24,
            no_value=self.no_value,
            overrides=[
                override("share ok", unit="percentunit", decimals=2),
                override("received", unit="decbytes"),
                override("per second", unit="locale", decimals=1),
                *(override(name, unit="ms") for name in times),
            ],
            **settings,
        )

    def sum(self, field: str) -> str:
        """The sum of a field in the whole time range, by group."""
        return self.ranges.sum(field, SPAN, self._by)

    @property
    def _by(self) -> tuple[str]:
        return (self.label,)


TARGETS = GroupPanels(
    label="target",
    noun="target",
    ranges=Lines(ONE_RUN, LineKind.RANGE, where=_CHOSEN, needs=("target",)),
    totals=Lines(ONE_RUN, LineKind.TARGET, where=_CHOSEN, needs=("target",)),
    requests_shown="Requests of each target when the ledger accounted for them: when their leases ended.",
    share_shown="The share of the accounted requests of each target that was ok; those that were not sent or"
    " are lost count as not ok.",
    no_value="this run names no targets",
)
NAMES = GroupPanels(
    label="request",
    noun="name",
    ranges=Lines(ONE_RUN, LineKind.INNER_RANGE, needs=("request",)),
    totals=Lines(ONE_RUN, LineKind.INNER, needs=("request",)),
    requests_shown=f"Requests that user code has made, by name, when their leases ended.{_BESIDE}",
    share_shown="The share of the requests of each name that was ok.",
    no_value="this run makes no requests within iterations",
)


def build_variable() -> Json:
    """The variable that selects targets."""
    return build_text_variable(
        "target",
        "Target",
        ".+",
        "A regular expression for the names of targets; it applies to the panels by target.",
    )


def build_target_table_panel() -> Panel:
    """A row for each target."""
    requests, ok = TARGETS.sum("requests"), TARGETS.sum(Outcome.OK)
    unsent = [TARGETS.sum(outcome) for outcome in (Outcome.NOT_SENT, Outcome.LOST)]
    return TARGETS.build_table(
        title="Targets",
        shows="What was accounted for of each target, at once. Its rate and its quantiles are of all phases"
        " but the warm-up, from the latest time that the run came to rest.",
        counts={
            "accounted": requests,
            "share ok": f"{ok} / {requests}",
            "failed": " - ".join((requests, ok, *unsent)),
            "not sent, or lost": " + ".join(unsent),
        },
        times={
            "p50": "p50_ms",
            "p90": "p90_ms",
            "p99": "p99_ms",
            "response time p99": "response_time_p99_ms",
            "lateness p99": "lateness_p99_ms",
        },
    )


def build_inner_table_panel() -> Panel:
    """A row for each name."""
    requests, ok = NAMES.sum("requests"), NAMES.sum(Outcome.OK)
    return NAMES.build_table(
        title="Requests of iterations",
        shows="What was counted of the requests of each name. Their rate and their quantiles are of all"
        f" phases but the warm-up, from the latest time that the run came to rest.{_BESIDE}",
        counts={"counted": requests, "share ok": f"{ok} / {requests}", "failed": f"{requests} - {ok}"},
        times={"p50": "p50_ms", "p90": "p90_ms", "p99": "p99_ms", "max": "max_ms"},
    )

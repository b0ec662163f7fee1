"""Panels of single figures: the state of a run, its account, its outcomes and its latencies as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.results.lines import LineKind
from oku_dashboards.grafana.colours import (
    BAD,
    CAUTION,
    FAINT,
    GOOD,
    OUTCOME_COLOURS,
    PLAIN,
    STATE_COLOURS,
    VERDICT_COLOURS,
)
from oku_dashboards.grafana.logql import ONE_RUN, SPAN, Lines, rate
from oku_dashboards.grafana.panel import HALF, Exactness, Json, Panel, Query, by_threshold, override
from oku_dashboards.grafana.visualizations import bar_gauge, gauge, stat

AT_REST = "available when the run is at rest"
LATENCIES = {
    "min": "min",
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p99_9": "p99.9",
    "max": "max",
}
"""The fields of the summary, and how they are shown."""
_NO_RUN = "no run"
NO_VERDICT = "none"
W = TypeVar("W", bound=StrEnum)
_SMALL = 18
"""Of words that may be a hundred characters, in pixels."""
_NOW = "30s"
"""How much time a figure of now covers: the line of a tick waits for the checkpoints of its second."""
_NOTHING_NOW = "at rest"
PER_SECOND = "suffix: req/s"
"""Grafana's own unit rounds 8,788 to 9K."""


@dataclass(frozen=True)
class StatPanels:
    """The single figures of a run.

    Attributes:
        whose: the matcher of the run.
    """

    whose: str = ONE_RUN

    def build_head(self, width: int = HALF) -> Panel:
        """The target and the load."""
        words = ("target", "load")
        heads = Lines(self.whose, LineKind.TICK, where='load != ""', needs=words)
        return stat(
            fields="/^(target|load)$/",
            title="Target and load",
            shows="What the run asks, and how its requests are sent.",
            exactness=Exactness.LEDGER,
            queries=[Query(f"topk(1, {heads.latest_at(SPAN, words)})", is_instant=True)],
            no_value=_NO_RUN,
            options={"textMode": "value", "text": {"titleSize": _SMALL, "valueSize": _SMALL}},
            width=width,
        )

    def build_verdict(self, width: int = HALF) -> Panel:
        """Whether the run has passed, in the colour of that."""
        needs = ("verdict",)
        verdicts = Lines(self.whose, LineKind.SUMMARY, where='verdict != ""', needs=needs)
        return stat(
            fields="/^verdict$/",
            title="Verdict",
            shows="Whether the run has passed its thresholds, from the latest summary, which is written"
            " whenever the run comes to rest. A run that is over without a single request that was ok has"
            " failed; others without thresholds have no verdict.",
            exactness=Exactness.EXACT,
            queries=[Query(f"topk(1, {verdicts.latest_at(SPAN, needs)})", is_instant=True)],
            no_value=NO_VERDICT,
            defaults={"mappings": [build_mapping(VERDICT_COLOURS)], "color": {"mode": "thresholds"}},
            options={"colorMode": "background", "textMode": "value"},
            width=width,
        )

    def build_state(self, width: int = HALF) -> Panel:
        """The state, in its colour."""
        states = Lines(self.whose, LineKind.TICK, LineKind.EVENT, where='state != ""', needs=("state",))
        return stat(
            fields="/^state$/",
            title="State",
            shows="The state of the run, from its latest event or, if that lies before the time range, from"
            " its latest tick.",
            exactness=Exactness.RECORDED,
            queries=[Query(f"topk(1, {states.latest_at(SPAN, ('state',))})", is_instant=True)],
            no_value=_NO_RUN,
            defaults={"mappings": [build_mapping(STATE_COLOURS)], "color": {"mode": "thresholds"}},
            options={"colorMode": "background", "textMode": "value"},
            width=width,
        )

    def build_progress(self, width: int = HALF) -> Panel:
        """The share of the request space that is accounted for, or of the time that has passed."""
        accounted = f"{self.ticks.max('accounted', SPAN)} / {self.ticks.last('requests_total', SPAN)}"
        passed = f"{self.ticks.max('clock_s', SPAN)} / {self.ticks.max('length_s', SPAN)}"
        return gauge(
            title="Progress",
            shows="The share of the requests that is accounted for; of a run that only a time ends, the share"
            " of the time that has passed.",
            exactness=Exactness.LEDGER,
            queries=[Query(f"({accounted}) or ({passed})", "accounted", is_instant=True)],
            no_value=_NO_RUN,
            defaults={"min": 0, "max": 1, **by_threshold({1: GOOD}, PLAIN)},
            width=width,
        )

    def build_accounted(self, width: int = HALF) -> Panel:
        """The accounted requests, and all of them."""
        return stat(
            title="Accounted",
            shows="How many requests have an outcome in the ledger, and how many the run has in all.",
            exactness=Exactness.LEDGER,
            queries=[
                Query(self.ticks.max("accounted", SPAN), "accounted", is_instant=True),
                Query(self.ticks.last("requests_total", SPAN), "of", is_instant=True),
            ],
            unit="locale",
            decimals=0,
            no_value=_NO_RUN,
            overrides=[override("of", colour=FAINT)],
            options={"orientation": "horizontal"},
            width=width,
        )

    def build_rate(self, width: int = HALF) -> Panel:
        """The rate of the last ticks."""
        return stat(
            title="Rate now",
            shows="Requests that ended per second, over the last 30 seconds of the time range.",
            exactness=Exactness.SERIES,
            queries=[Query(rate(self.ticks, "requests_ended", _NOW), "requests", is_instant=True)],
            unit=PER_SECOND,
            decimals=0,
            no_value=_NOTHING_NOW,
            width=width,
        )

    def build_failures(self, width: int = HALF) -> Panel:
        """Requests that were not ok, and their share."""
        count = f"{self.ranges.sum('requests', SPAN)} - {self.ranges.sum(Outcome.OK, SPAN)}"
        share = f"1 - {self.ranges.sum(Outcome.OK, SPAN)} / {self.ranges.sum('requests', SPAN)}"
        colour = by_threshold({1e-12: CAUTION, 0.01: BAD}, GOOD)
        return stat(
            title="Not ok so far",
            shows="How many of the accounted requests had an outcome other than `ok`, and their share of"
            " the accounted requests.",
            exactness=Exactness.EXACT,
            queries=[Query(count, "requests", is_instant=True), Query(share, "share", is_instant=True)],
            unit="locale",
            decimals=0,
            no_value="nothing accounted yet",
            defaults=by_threshold({1: CAUTION}, GOOD),
            overrides=[override("share", unit="percentunit", decimals=2, **colour)],
            options={"orientation": "horizontal"},
            width=width,
        )

    def build_p99(self, width: int = HALF) -> Panel:
        """The p99 of the last ticks."""
        return stat(
            title="p99 now",
            shows="99 of 100 responses arrived within this time: the worst second of the last 30 in the"
            " time range.",
            exactness=Exactness.PROGRESS,
            queries=[Query(self.ticks.max("p99_ms", _NOW), "p99", is_instant=True)],
            unit="ms",
            no_value=_NOTHING_NOW,
            width=width,
        )

    def build_time_left(self, width: int = HALF) -> Panel:
        """How long the rest will take."""
        time = f"({self.ticks.max('length_s', SPAN)} - {self.ticks.max('clock_s', SPAN)})"
        left = f"({self.ticks.last('requests_total', SPAN)} - {self.ticks.last('done', SPAN)})"
        seconds_each = f"{self.ticks.max('active_s', SPAN)} / {self.ticks.last('done', SPAN)}"
        return stat(
            title="Time left",
            shows="How long a run with a rate or a length of time still lasts; of others, how long the"
            " remaining requests take at the mean rate so far. A completed run has nothing left; a cancelled"
            " one keeps what it had left.",
            exactness=Exactness.PROGRESS,
            queries=[
                Query(f"({time} unless {left} == 0) or ({left} * {seconds_each})", "left", is_instant=True)
            ],
            unit="dthms",
            decimals=0,
            no_value=_NO_RUN,
            width=width,
        )

    def build_account(self, names: Sequence[str] = (), width: int = HALF) -> Panel:
        """The account of the ledger; only some of its figures if they are named."""
        figures = {
            "requests": self.ticks.last("requests_total", SPAN),
            "accounted": self.ticks.max("accounted", SPAN),
            "leased": self.ticks.last("leased", SPAN),
            "pending": self.ticks.last("pending", SPAN),
            "unused": self.ticks.last("unused", SPAN),
            "resent at most": self.ticks.max("resent_at_most", SPAN),
            "active": self.ticks.max("active_s", SPAN),
            "throughput": f"{self.ticks.max('accounted', SPAN)} / {self.ticks.max('active_s', SPAN)}",
        }
        settings: dict[str, Json] = {
            "resent at most": by_threshold({1: CAUTION}, GOOD),
            "active": {"unit": "dthms"},
            "throughput": {"unit": PER_SECOND},
        }
        return stat(
            title="Account",
            shows="The request space: accounted requests, requests leased to workers, and pending ones sum"
            " to the requests of the run. Unused is what a run that a time ended could not take of its"
            " number. Next to them: an upper bound on requests sent more than once, how"
            " long the run was active, and how many requests it accounted for per active second.",
            exactness=Exactness.LEDGER,
            queries=[Query(figures[name], name, is_instant=True) for name in names or figures],
            unit="locale",
            decimals=0,
            no_value=_NO_RUN,
            overrides=[override(name, **own) for name, own in settings.items() if name in (names or figures)],
            width=width,
        )

    def build_queued(self, width: int = HALF) -> Panel:
        """How long the run waited."""
        summaries = Lines(self.whose, LineKind.SUMMARY)
        return stat(
            title="Queued",
            shows="How long the run was pending, over all its turns: it waited for other runs, for workers,"
            " or for what else it needs. From the latest summary.",
            exactness=Exactness.EXACT,
            queries=[Query(summaries.last("queued_s", SPAN), "queued", is_instant=True)],
            unit="dthms",
            decimals=0,
            no_value=AT_REST,
            width=width,
        )

    def build_sums(self, width: int = HALF) -> Panel:
        """The sums over the lines of ranges."""
        return stat(
            title="Sums over ranges",
            shows="The sums over all lines of kind `range`. If the time range holds the whole run,"
            " `accounted` equals the ledger's to the last request.",
            exactness=Exactness.EXACT,
            queries=[
                Query(self.ranges.count(SPAN), "ranges", is_instant=True),
                Query(self.ranges.sum("requests", SPAN), "accounted", is_instant=True),
                Query(self.ranges.sum("bytes_received", SPAN), "bytes received", is_instant=True),
            ],
            unit="locale",
            decimals=0,
            no_value="nothing accounted yet",
            overrides=[override("bytes received", unit="decbytes", decimals=1)],
            width=width,
        )

    def build_outcomes(self, width: int = HALF) -> Panel:
        """The requests by outcome."""
        return bar_gauge(
            title="Outcomes of the run",
            shows="The accounted requests by outcome.",
            exactness=Exactness.EXACT,
            queries=[Query(self.ranges.sum(outcome, SPAN), outcome, is_instant=True) for outcome in OUTCOMES],
            unit="locale",
            decimals=0,
            no_value="nothing accounted yet",
            width=width,
        ).colour({str(outcome): colour for outcome, colour in OUTCOME_COLOURS.items()})

    def build_statuses(self, width: int = HALF) -> Panel:
        """The responses by status."""
        statuses = Lines(self.whose, LineKind.STATUS)
        return bar_gauge(
            is_by_row=True,
            title="Statuses of the run",
            shows="The responses by status code.",
            exactness=Exactness.EXACT,
            queries=[Query(statuses.sum("requests", SPAN, ("status",)), is_instant=True)],
            unit="locale",
            decimals=0,
            no_value="no response accounted yet",
            width=width,
        )

    def build_latencies(self, names: Sequence[str] = tuple(LATENCIES), width: int = HALF) -> Panel:
        """The latencies of the whole run."""
        return stat(
            title="Latency of the whole run",
            shows="Latencies of all answered requests of the run, from the latest summary, which is written"
            " whenever the run comes to rest. Quantiles are known to three significant digits.",
            exactness=Exactness.EXACT,
            queries=[
                Query(self.summaries.last(f"latency_ms.{name}", SPAN), LATENCIES[name], is_instant=True)
                for name in names
            ],
            unit="ms",
            no_value=AT_REST,
            width=width,
        )

    @property
    def ticks(self) -> Lines:
        """Its seconds."""
        return Lines(self.whose, LineKind.TICK)

    @property
    def ranges(self) -> Lines:
        """Its accounted ranges."""
        return Lines(self.whose, LineKind.RANGE)

    @property
    def summaries(self) -> Lines:
        """Its summaries."""
        return Lines(self.whose, LineKind.SUMMARY)


def build_mapping(colours: Mapping[W, str]) -> Json:
    """The colours of words, as a setting of the fields that hold them."""
    options = {
        word.value: {"text": word.value, "color": colour, "index": place}
        for place, (word, colour) in enumerate(colours.items())
    }
    return {"type": "value", "options": options}

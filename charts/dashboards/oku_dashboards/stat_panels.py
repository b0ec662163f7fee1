"""Panels of single figures: the state of a run, its account, its outcomes and its latencies as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

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
from oku_dashboards.grafana.panel import Exactness, Json, Panel, by_threshold, override
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

    def build_head(self) -> Panel:
        """The target and the load."""
        words = ("target", "load")
        heads = Lines(self.whose, LineKind.TICK, where='load != ""', needs=words)
        return stat(
            fields="/^(target|load)$/",
            title="Target and load",
            shows="What the run asks, and how its requests are sent.",
            exactness=Exactness.LEDGER,
            queries={"": f"topk(1, {heads.latest_at(SPAN, words)})"},
            no_value=_NO_RUN,
            options={"text": {"titleSize": _SMALL, "valueSize": _SMALL}},
        )

    def build_verdict(self) -> Panel:
        """Whether the run has passed, in the colour of that."""
        return self._build_word(
            "verdict",
            LineKind.SUMMARY,
            colours=VERDICT_COLOURS,
            title="Verdict",
            shows="Whether the run has passed its thresholds, from the latest summary, which is written"
            " whenever the run comes to rest. A run that is over without a single request that was ok has"
            " failed; others without thresholds have no verdict.",
            exactness=Exactness.EXACT,
            no_value="none",
        )

    def build_state(self) -> Panel:
        """The state, in its colour."""
        return self._build_word(
            "state",
            LineKind.TICK,
            LineKind.EVENT,
            colours=STATE_COLOURS,
            title="State",
            shows="The state of the run, from its latest event or, if that lies before the time range, from"
            " its latest tick.",
            exactness=Exactness.RECORDED,
            no_value=_NO_RUN,
        )

    def build_progress(self) -> Panel:
        """The share of the request space that is accounted for, or of the time that has passed."""
        accounted = f"{self.ticks.max('accounted', SPAN)} / {self.ticks.last('requests_total', SPAN)}"
        passed = f"{self.ticks.max('clock_s', SPAN)} / {self.ticks.max('length_s', SPAN)}"
        return gauge(
            title="Progress",
            shows="The share of the requests that is accounted for; of a run that only a time ends, the share"
            " of the time that has passed.",
            exactness=Exactness.LEDGER,
            queries={"accounted": f"({accounted}) or ({passed})"},
            no_value=_NO_RUN,
            defaults={"min": 0, "max": 1, **by_threshold({1: GOOD}, PLAIN)},
        )

    def build_accounted(self) -> Panel:
        """The accounted requests, and all of them."""
        return stat(
            title="Accounted",
            shows="How many requests have an outcome in the ledger, and how many the run has in all.",
            exactness=Exactness.LEDGER,
            queries={
                "accounted": self.ticks.max("accounted", SPAN),
                "of": self.ticks.last("requests_total", SPAN),
            },
            unit="locale",
            decimals=0,
            no_value=_NO_RUN,
            overrides=[override("of", colour=FAINT)],
            options={"orientation": "horizontal"},
        )

    def build_rate(self) -> Panel:
        """The rate of the last ticks."""
        return stat(
            title="Rate now",
            shows="Requests that ended per second, over the last 30 seconds of the time range.",
            exactness=Exactness.SERIES,
            queries={"requests": rate(self.ticks, "requests_ended", _NOW)},
            unit=PER_SECOND,
            decimals=0,
            no_value=_NOTHING_NOW,
        )

    def build_failures(self) -> Panel:
        """Requests that were not ok, and their share."""
        count = f"{self.ranges.sum('requests', SPAN)} - {self.ranges.sum(Outcome.OK, SPAN)}"
        share = f"1 - {self.ranges.sum(Outcome.OK, SPAN)} / {self.ranges.sum('requests', SPAN)}"
        colour = by_threshold({1e-12: CAUTION, 0.01: BAD}, GOOD)
        return stat(
            title="Not ok so far",
            shows="How many of the accounted requests had an outcome other than `ok`, and their share of"
            " the accounted requests.",
            exactness=Exactness.EXACT,
            queries={"requests": count, "share": share},
            unit="locale",
            decimals=0,
            no_value="nothing accounted yet",
            defaults=by_threshold({1: CAUTION}, GOOD),
            overrides=[override("share", unit="percentunit", decimals=2, **colour)],
            options={"orientation": "horizontal"},
        )

    def build_p99(self) -> Panel:
        """The p99 of the last ticks."""
        return stat(
            title="p99 now",
            shows="99 of 100 responses arrived within this time: the worst second of the last 30 in the"
            " time range.",
            exactness=Exactness.PROGRESS,
            queries={"p99": self.ticks.max("p99_ms", _NOW)},
            unit="ms",
            no_value=_NOTHING_NOW,
        )

    def build_time_left(self) -> Panel:
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
            queries={"left": f"({time} unless {left} == 0) or ({left} * {seconds_each})"},
            unit="dthms",
            decimals=0,
            no_value=_NO_RUN,
        )

    def build_account(self, names: Sequence[str] = ()) -> Panel:
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
            queries={name: figures[name] for name in names or figures},
            unit="locale",
            decimals=0,
            no_value=_NO_RUN,
            overrides=[override(name, **own) for name, own in settings.items() if name in (names or figures)],
        )

    def build_queued(self) -> Panel:
        """How long the run waited."""
        return stat(
            title="Queued",
            shows="How long the run was pending, over all its turns: it waited for other runs, for workers,"
            " or for what else it needs. From the latest summary.",
            exactness=Exactness.EXACT,
            queries={"queued": self.summaries.last("queued_s", SPAN)},
            unit="dthms",
            decimals=0,
            no_value=AT_REST,
        )

    def build_sums(self) -> Panel:
        """The sums over the lines of ranges."""
        return stat(
            title="Sums over ranges",
            shows="The sums over all lines of kind `range`. If the time range holds the whole run,"
            " `accounted` equals the ledger's to the last request.",
            exactness=Exactness.EXACT,
            queries={
                "ranges": self.ranges.count(SPAN),
                "accounted": self.ranges.sum("requests", SPAN),
                "bytes received": self.ranges.sum("bytes_received", SPAN),
            },
            unit="locale",
            decimals=0,
            no_value="nothing accounted yet",
            overrides=[override("bytes received", unit="decbytes", decimals=1)],
        )

    def build_outcomes(self) -> Panel:
        """The requests by outcome."""
        return bar_gauge(
            title="Outcomes of the run",
            shows="The accounted requests by outcome.",
            exactness=Exactness.EXACT,
            queries={outcome: self.ranges.sum(outcome, SPAN) for outcome in OUTCOMES},
            unit="locale",
            decimals=0,
            no_value="nothing accounted yet",
        ).colour({str(outcome): colour for outcome, colour in OUTCOME_COLOURS.items()})

    def build_statuses(self) -> Panel:
        """The responses by status."""
        statuses = Lines(self.whose, LineKind.STATUS)
        return bar_gauge(
            is_by_row=True,
            title="Statuses of the run",
            shows="The responses by status code.",
            exactness=Exactness.EXACT,
            queries={"": statuses.sum("requests", SPAN, ("status",))},
            unit="locale",
            decimals=0,
            no_value="no response accounted yet",
        )

    def build_latencies(self) -> Panel:
        """The latencies of the whole run."""
        return stat(
            title="Latency of the whole run",
            shows="Latencies of all answered requests of the run, from the latest summary, which is written"
            " whenever the run comes to rest. Quantiles are known to three significant digits.",
            exactness=Exactness.EXACT,
            queries={
                name: self.summaries.last(f"latency_ms.{field}", SPAN) for field, name in LATENCIES.items()
            },
            unit="ms",
            no_value=AT_REST,
        )

    def _build_word(self, name: str, *kinds: LineKind, colours: Mapping[W, str], **settings: Any) -> Panel:
        """The latest word of a field, in its colour."""
        words = Lines(self.whose, *kinds, where=f'{name} != ""', needs=(name,))
        return stat(
            fields=f"/^{name}$/",
            queries={"": f"topk(1, {words.latest_at(SPAN, (name,))})"},
            defaults={"mappings": [build_value_mapping(colours)], "color": {"mode": "thresholds"}},
            options={"colorMode": "background"},
            **settings,
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


def build_value_mapping(colours: Mapping[W, str]) -> Json:
    """The colours of words, as a setting of the fields that hold them."""
    options = {
        word.value: {"text": word.value, "color": colour, "index": place}
        for place, (word, colour) in enumerate(colours.items())
    }
    return {"type": "value", "options": options}

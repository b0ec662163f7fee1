"""Exports the progress of runs to Prometheus: accounted and pending requests, and queueing times."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from oku_coordinator.ledger.rules.snapshots import Standing
from oku_core.accounting.outcome import build_cause_counts, build_outcome_counts
from oku_core.summary.tick import Tick

_PARTS = ("accounted", "leased", "pending", "resent_at_most")
_SINGLE = (
    ("requests_per_second", "Requests that ended in the last second.", "rate_rps"),
    (
        "planned_requests_per_second",
        "Requests planned by the rate of the run in the last second; 0 without a rate.",
        "planned_rps",
    ),
    ("in_flight", "Requests in flight.", "in_flight"),
    ("queued_seconds", "How long the run was pending.", "queued_s"),
)
"""The metrics with one figure per run: name, description, and the attribute of `RunFigures`."""


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """The progress of a run.

    Attributes:
        run: the id of the run.
        requests: how many requests are in each of `_PARTS`, in their order.
        outcomes: the counts of outcomes in the order of `OUTCOMES`.
        not_sent: why requests were not sent, in the order of `NOT_SENT_CAUSES`.
        rate_rps: the requests that ended per second; 0 unless the run is active, like the next two.
        planned_rps: the requests that its rate made per second.
        in_flight: the requests that were sent and not yet answered.
        queued_s: how long it was pending, to the millisecond, as in the summary.
    """

    run: str
    requests: Sequence[int]
    outcomes: Sequence[int]
    not_sent: Sequence[int]
    rate_rps: float = 0.0
    planned_rps: float = 0.0
    in_flight: float = 0.0
    queued_s: float


class RunCollector(Collector):
    """Collects the metrics of runs at each scrape.

    Args:
        read: reads the figures of the exported runs.
    """

    def __init__(self, read: Callable[[], Sequence[RunFigures]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Build the metrics."""
        runs = self._read()
        for name, text, label, counts in (
            ("requests", "Requests, by part.", "part", [_name_parts(each.requests) for each in runs]),
            (
                "outcomes", "Requests so far, by outcome.", "outcome",
                [build_outcome_counts(each.outcomes) for each in runs],
            ),
            (
                "not_sent", "Accounted requests that were not sent, by cause.", "cause",
                [build_cause_counts(each.not_sent) for each in runs],
            ),
        ):  # fmt: skip
            gauge = GaugeMetricFamily(f"oku_run_{name}", text, labels=["run", label])
            for figures, by_label in zip(runs, counts, strict=True):
                for value, count in by_label.items():
                    gauge.add_metric([figures.run, value], count)
            yield gauge
        for name, text, attribute in _SINGLE:
            gauge = GaugeMetricFamily(f"oku_run_{name}", text, labels=["run"])
            for figures in runs:
                gauge.add_metric([figures.run], getattr(figures, attribute))
            yield gauge


def _name_parts(requests: Sequence[int]) -> dict[str, int]:
    return dict(zip(_PARTS, requests, strict=True))


def build_run_figures(standing: Standing) -> RunFigures:
    """The figures of a run that is not pending, from the ledger, which has no requests in flight."""
    record, lengths = standing.record, standing.lengths
    return RunFigures(
        run=record.run,
        requests=(lengths.accounted, lengths.leased, lengths.pending, record.resent_at_most),
        outcomes=record.outcomes,
        not_sent=standing.not_sent,
        queued_s=round(record.queued_s, 3),
    )


def build_tick_figures(tick: Tick, queued_s: float) -> RunFigures:
    """The figures of an active run from its last tick."""
    sample = tick.sample
    return RunFigures(
        run=tick.run,
        requests=[getattr(sample, part) for part in _PARTS],
        outcomes=sample.outcomes_so_far,
        not_sent=tick.not_sent,
        rate_rps=sample.rate_rps,
        planned_rps=(sample.requests_planned or 0) / max(1.0, sample.seconds),
        in_flight=sample.in_flight or 0.0,
        queued_s=round(queued_s, 3),
    )

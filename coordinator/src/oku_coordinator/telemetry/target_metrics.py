"""Shows Prometheus what came of each target of a run: counters by outcome, and histograms of its times.

The figures are those of the account, read when somebody asks for them; so they only ever rise, and the last
ones of a run are exact.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import NativeHistogram, Sample
from prometheus_client.utils import floatToGoString

from oku_coordinator.ledger.storage.run_account import Account, RunAccount, sum_counts
from oku_coordinator.telemetry.native_histogram import build_native_histogram, count_between, find_cuts
from oku_core.accounting.histogram import BUCKETS, Histogram
from oku_core.accounting.outcome import build_outcome_counts
from oku_core.spec.request_template import list_target_names
from oku_core.spec.spec import Spec

BOUNDS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""The upper bounds of the buckets, in seconds; one without a bound follows."""
_CUTS = [0, *find_cuts(BOUNDS_S), BUCKETS]
_LABELS = ("run", "target")
_TIMES = {
    "latency": "Time from sending a request to the end of its response, of those that were answered.",
    "response_time": "Time from when a request was due to the end of its response; none without a rate.",
    "lateness": "Time from when a request was due to when it was sent; none without a rate.",
}


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Times in the form in which Prometheus takes them.

    Attributes:
        counts: how many are at most as long as each of `BOUNDS_S`, and how many there are.
        native: the same times in finer buckets, with their sum in seconds.
    """

    counts: Sequence[int]
    native: NativeHistogram


@dataclass(frozen=True, kw_only=True)
class TargetFigures:
    """What is accounted of a target since the run began, its warm-up included.

    Attributes:
        run: the id of the run.
        target: the name of the target; empty if it has none.
        outcomes: the counts of outcomes in the order of `OUTCOMES`.
        bytes_received: the number of bytes in response bodies.
        latency: of its requests.
        response_time: of a run with a rate; None if there is nothing in it, as the next one is.
        lateness: the same.
    """

    run: str
    target: str
    outcomes: Sequence[int]
    bytes_received: int
    latency: Distribution | None
    response_time: Distribution | None
    lateness: Distribution | None


class TargetCollector(Collector):
    """Gives the metrics of the targets at each scrape.

    Args:
        read: gives the figures of the run that was active last; none before there is one.
        has_native: whether histograms have a native sample as well, which the text format cannot show.
    """

    def __init__(self, read: Callable[[], Sequence[TargetFigures]], *, has_native: bool = False) -> None:
        self._read = read
        self._has_native = has_native

    def collect(self) -> Iterator[Metric]:
        """Build the metrics."""
        targets = self._read()
        yield _build_requests(targets)
        received = CounterMetricFamily(
            "oku_target_received_bytes", "Bytes of response bodies, by target.", labels=_LABELS
        )
        for figures in targets:
            received.add_metric([figures.run, figures.target], figures.bytes_received)
        yield received
        for name, text in _TIMES.items():
            yield self._build_histogram(name, text, targets)

    def _build_histogram(self, name: str, text: str, targets: Iterable[TargetFigures]) -> Metric:
        histogram = HistogramMetricFamily(f"oku_target_{name}_seconds", text, labels=_LABELS)
        bounds = [*map(floatToGoString, BOUNDS_S), "+Inf"]
        for figures in targets:
            distribution: Distribution | None = getattr(figures, name)
            if distribution is None:
                continue
            values, native = (figures.run, figures.target), distribution.native
            buckets = list(zip(bounds, distribution.counts, strict=True))
            histogram.add_metric(values, buckets, native.sum_value)
            if self._has_native:
                labels = dict(zip(_LABELS, values, strict=True))
                histogram.samples.append(
                    Sample(histogram.name, labels, native.count_value, native_histogram=native)
                )
        return histogram


def build_figures(run: str, spec: Spec, accounts: RunAccount) -> list[TargetFigures]:
    """The figures of each target of a run, in the order of its spec; a single one may have no name."""
    return [
        _build_figures(run, name, [part for key, part in accounts.parts.items() if key[1] == name])
        for name in list_target_names(spec)
    ]


def _build_figures(run: str, target: str, parts: Sequence[Account]) -> TargetFigures:
    return TargetFigures(
        run=run,
        target=target,
        outcomes=sum_counts(part.outcomes for part in parts),
        bytes_received=sum(part.bytes_received for part in parts),
        latency=_build_distribution(part.latency for part in parts),
        response_time=_build_distribution(part.response_time for part in parts),
        lateness=_build_distribution(part.lateness for part in parts),
    )


def _build_distribution(histograms: Iterable[Histogram]) -> Distribution | None:
    filled = [histogram for histogram in histograms if histogram.total]
    if not filled:
        return None
    between = zip(*(count_between(histogram, _CUTS) for histogram in filled), strict=True)
    return Distribution(counts=list(accumulate(map(sum, between))), native=build_native_histogram(filled))


def _build_requests(targets: Iterable[TargetFigures]) -> Metric:
    requests = CounterMetricFamily(
        "oku_target_requests", "Accounted requests, by target and outcome.", labels=(*_LABELS, "outcome")
    )
    for figures in targets:
        for outcome, count in build_outcome_counts(figures.outcomes).items():
            requests.add_metric([figures.run, figures.target, outcome], count)
    return requests

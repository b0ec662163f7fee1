"""Exports the requests of a run to Prometheus by target, or by the name that user code gave them.

These are counters by outcome, and histograms of times.

The figures come from the account at the time of the scrape; so they only ever rise, and the last ones of a
run are exact.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import NativeHistogram, Sample
from prometheus_client.utils import floatToGoString

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.telemetry.prometheus.native_histogram import build_native_histogram, find_cuts
from oku_core.accounting.account import Account
from oku_core.accounting.counts import Counts
from oku_core.accounting.histogram import BUCKETS, Histogram
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import build_outcome_counts, sum_counts
from oku_core.spec.request_template import list_target_names
from oku_core.spec.spec import Spec

BOUNDS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""The upper bounds of the buckets, in seconds; a last bucket has no bound."""
_CUTS = [0, *find_cuts(BOUNDS_S), BUCKETS]
_TIMES = {
    Time.LATENCY: "Time from sending an answered request to the end of its response.",
    Time.RESPONSE_TIME: "Time from a request's due time to the end of the response; none without a rate.",
    Time.LATENESS: "Time from the due time of a request to its sending; none without a rate.",
}


@dataclass(frozen=True, kw_only=True)
class MetricKind:
    """The names of the metrics of named requests.

    Attributes:
        prefix: the start of their names.
        label: the label with the name of the requests.
        counts: the description of the counters.
        times: the exported times.
    """

    prefix: str
    label: str
    counts: str
    times: Sequence[Time]

    @property
    def labels(self) -> tuple[str, str]:
        """The labels of all of them."""
        return "run", self.label


TARGETS = MetricKind(
    prefix="oku_target", label="target", counts="Accounted requests, by target", times=LIVE_TIMES
)
INNER = MetricKind(
    prefix="oku_inner",
    label="name",
    counts="Requests that user code has made within iterations, by name",
    times=(Time.LATENCY,),
)


@dataclass(frozen=True, kw_only=True)
class BucketedTimes:
    """Times in the form of Prometheus.

    Attributes:
        counts: how many are at most as long as each of `BOUNDS_S`, and their number.
        native: the same times in finer buckets, with their sum in seconds.
    """

    counts: Sequence[int]
    native: NativeHistogram


@dataclass(frozen=True, kw_only=True)
class RequestFigures:
    """The counts of a target, or of the inner requests of a name, since the start of the run.

    The warm-up is included.

    Attributes:
        run: the id of the run.
        name: the name of the target, which is empty if it has none, or of the requests.
        counts: the counts of its requests, without times.
        times: the measured times of its requests.
    """

    run: str
    name: str
    counts: Counts
    times: Mapping[Time, BucketedTimes]


class RequestCollector(Collector):
    """Collects the metrics of targets, or of inner requests, at each scrape.

    Args:
        kind: the kind of metrics.
        read: reads the figures of the last active run; none before the first.
        has_native: whether histograms have a native sample as well, which the text format cannot show.
    """

    def __init__(
        self, kind: MetricKind, read: Callable[[], Sequence[RequestFigures]], *, has_native: bool = False
    ) -> None:
        self._kind = kind
        self._read = read
        self._has_native = has_native

    def collect(self) -> Iterator[Metric]:
        """Build the metrics."""
        kind, named = self._kind, self._read()
        yield self._build_requests(named)
        received = CounterMetricFamily(
            f"{kind.prefix}_received_bytes", f"Bytes of response bodies, by {kind.label}.", labels=kind.labels
        )
        for figures in named:
            received.add_metric([figures.run, figures.name], figures.counts.bytes_received)
        yield received
        for time in kind.times:
            yield self._build_histogram(time, named)

    def _build_requests(self, named: Iterable[RequestFigures]) -> Metric:
        kind = self._kind
        requests = CounterMetricFamily(
            f"{kind.prefix}_requests", f"{kind.counts} and outcome.", labels=(*kind.labels, "outcome")
        )
        for figures in named:
            for outcome, count in build_outcome_counts(figures.counts.outcomes).items():
                requests.add_metric([figures.run, figures.name, outcome], count)
        return requests

    def _build_histogram(self, time: Time, named: Iterable[RequestFigures]) -> Metric:
        kind = self._kind
        histogram = HistogramMetricFamily(f"{kind.prefix}_{time}_seconds", _TIMES[time], labels=kind.labels)
        bounds = [*map(floatToGoString, BOUNDS_S), "+Inf"]
        for figures in named:
            distribution = figures.times.get(time)
            if distribution is None:
                continue
            values, native = (figures.run, figures.name), distribution.native
            buckets = list(zip(bounds, distribution.counts, strict=True))
            histogram.add_metric(values, buckets, native.sum_value)
            if self._has_native:
                labels = dict(zip(kind.labels, values, strict=True))
                histogram.samples.append(
                    Sample(histogram.name, labels, native.count_value, native_histogram=native)
                )
        return histogram


def build_target_figures(run: str, spec: Spec, accounts: RunAccount) -> list[RequestFigures]:
    """The figures of each target of a run, in the order of its spec; a single target may have no name."""
    return [_build_figures(run, name, accounts.parts.list_named(name)) for name in list_target_names(spec)]


def build_inner_figures(run: str, accounts: RunAccount) -> list[RequestFigures]:
    """The figures of each name of the inner requests of a run, sorted."""
    return [
        _build_figures(run, name, accounts.inner.list_named(name)) for name in sorted(accounts.inner.names)
    ]


def _build_figures(run: str, name: str, parts: Sequence[Account]) -> RequestFigures:
    return RequestFigures(
        run=run,
        name=name,
        counts=Counts(
            outcomes=sum_counts(part.outcomes for part in parts),
            bytes_received=sum(part.bytes_received for part in parts),
        ),
        times={
            time: _build_distribution([part.times[time] for part in parts if time in part.times])
            for time in LIVE_TIMES
            if any(time in part.times for part in parts)
        },
    )


def _build_distribution(histograms: Sequence[Histogram]) -> BucketedTimes:
    between = zip(*(histogram.count_between(_CUTS) for histogram in histograms), strict=True)
    return BucketedTimes(
        counts=list(accumulate(map(sum, between))), native=build_native_histogram(histograms)
    )

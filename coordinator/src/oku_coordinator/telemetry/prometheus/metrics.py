"""The coordinator's own metrics for Prometheus; docs/metrics.md describes each."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageFault, measure_space
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.telemetry.prometheus import protobuf_format
from oku_coordinator.telemetry.prometheus.run_metrics import RunCollector, RunFigures
from oku_coordinator.telemetry.prometheus.target_metrics import (
    INNER,
    TARGETS,
    RequestCollector,
    RequestFigures,
)
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.messaging.credentials import Credential, CredentialFault
from oku_core.messaging.signing import Rejection
from oku_core.process.clock import Clock

ReadFigures = Callable[[], Sequence[RequestFigures]]


class Metrics:
    """The metrics behind `/metrics`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._read_runs: Callable[[], Sequence[RunFigures]] = tuple
        self._read_targets: ReadFigures = tuple
        self._read_inner: ReadFigures = tuple
        counter = partial(Counter, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        self._messages = counter("oku_messages", "Checkpoints by the ledger's verdict.", ["verdict"])
        self._rejected = counter(
            "oku_messages_rejected",
            "Dropped messages and clock requests, by reason.",
            ["reason"],
        )
        refused = counter(
            "oku_callers_refused",
            "Refused calls, by required credential and its fault.",
            ["credential", "reason"],
        )
        self._refusals = {
            (credential, refusal): refused.labels(credential, refusal)
            for credential, refusal in product(Credential, CredentialFault)
            if (credential, refusal) != (Credential.TOKEN, CredentialFault.EXPIRED)
        }
        self._expired = counter("oku_leases_expired", "Leases taken back, by reason.", ["reason"])
        self._commit = Histogram(
            "oku_commit_seconds",
            "Duration of the transaction of a batch of messages.",
            registry=self._registry,
        )
        self._progress = counter("oku_progress", "Progress events of workers.")
        self._workers = gauge("oku_workers", "Live workers.")
        self._clock_bound = gauge(
            "oku_clock_bound_seconds",
            "The largest error of a worker's copy of the coordinator's clock.",
        )
        self._ledger_faults = counter(
            "oku_ledger_faults", "Failed uses of the ledger's file, by reason.", ["reason"]
        )
        self._lines = counter("oku_loki_lines", "Lines for Loki by verdict.", ["verdict"])
        self._outbox_lines = gauge("oku_outbox_lines", "Lines waiting for Loki.")
        self._outbox_bytes = gauge("oku_outbox_bytes", "Approximate size of the waiting lines in the ledger.")
        for line_verdict in ("accepted", "refused", "dropped"):
            self._lines.labels(line_verdict)
        for verdict in MessageVerdict:
            self._messages.labels(verdict)
        for rejection in Rejection:
            self._rejected.labels(rejection)
        for reason in ExpiryReason:
            self._expired.labels(reason)
        for fault in StorageFault:
            self._ledger_faults.labels(fault)

    def show_runs(self, read: Callable[[], Sequence[RunFigures]]) -> None:
        """Expose the figures of runs that `read` returns at each scrape; call it once."""
        self._read_runs = read

    def show_targets(self, read: ReadFigures) -> None:
        """Expose the figures of targets that `read` returns at each scrape; call it once."""
        self._read_targets = read

    def show_inner(self, read: ReadFigures) -> None:
        """Expose the figures of inner requests that `read` returns at each scrape; call it once."""
        self._read_inner = read

    def count_messages(self, verdicts: list[MessageVerdict], seconds: float) -> None:
        """Count a batch of stored checkpoints."""
        self._commit.observe(seconds)
        for verdict in verdicts:
            self._messages.labels(verdict).inc()

    def count_rejected(self, rejection: Rejection) -> None:
        """Count a dropped message."""
        self._rejected.labels(rejection).inc()

    def count_refusal(self, credential: Credential, refusal: CredentialFault) -> None:
        """Count a refused caller."""
        self._refusals[credential, refusal].inc()

    def count_expired(self, reason: ExpiryReason) -> None:
        """Count an expired lease."""
        self._expired.labels(reason).inc()

    def show_ledger(self, ledger: Collector) -> None:
        """Expose the metrics of the ledger at each scrape; call it once."""
        self._registry.register(ledger)

    def count_storage_fault(self, fault: StorageFault) -> None:
        """Count a failed use of the ledger's file."""
        self._ledger_faults.labels(fault).inc()

    def count_progress(self) -> None:
        """Count a progress event."""
        self._progress.inc()

    def show_workers(self, count: int, clock_bound_s: float = 0.0) -> None:
        """Set the number of live workers, and the largest error of their clocks."""
        self._workers.set(count)
        self._clock_bound.set(clock_bound_s)

    def count_lines(self, verdict: str, lines: int) -> None:
        """Count lines `accepted` or `refused` by Loki, or `dropped`."""
        self._lines.labels(verdict).inc(lines)

    def show_outbox(self, lines: int, size: int) -> None:
        """Set the number of waiting lines and their bytes."""
        self._outbox_lines.set(lines)
        self._outbox_bytes.set(size)

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics and their content type: text, or protobuf if the `Accept` header allows it."""
        if protobuf_format.is_accepted(accept):
            collectors = self._build_collectors(has_native=True)
            families = chain(self._registry.collect(), *(each.collect() for each in collectors))
            return protobuf_format.write_families(families), protobuf_format.CONTENT_TYPE
        texts = map(generate_latest, (self._registry, *self._build_collectors()))
        return b"".join(texts), CONTENT_TYPE_LATEST

    def _build_collectors(self, *, has_native: bool = False) -> Iterator[Collector]:
        yield RunCollector(self._read_runs)
        for kind, read in ((TARGETS, self._read_targets), (INNER, self._read_inner)):
            yield RequestCollector(kind, read, has_native=has_native)


class LedgerCollector(Collector):
    """Collects the metrics of the ledger at each scrape.

    Args:
        ledger: the ledger.
        folder: the folder of its file.
        clock: Unix time.
    """

    def __init__(self, ledger: Ledger, folder: Path, clock: Clock) -> None:
        self._ledger = ledger
        self._folder = folder
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Build the metrics; unreadable ones are left out."""
        yield GaugeMetricFamily(
            "oku_ledger_usable",
            "1 while the ledger can be read and written, else 0.",
            value=0 if self._ledger.storage.trouble else 1,
        )
        space = measure_space(self._folder)
        if space is not None:
            yield GaugeMetricFamily(
                "oku_data_available_bytes",
                "Free space of the disk of the data folder.",
                value=space.free_bytes,
            )
            yield GaugeMetricFamily(
                "oku_data_size_bytes", "Size of the disk of the data folder.", value=space.size_bytes
            )
        try:
            with self._ledger.read() as t:
                counts = run_table.count_by_state(t)
                longest_s = run_table.find_longest_queued_s(t, self._clock())
        except StorageError:
            return  # its health has recorded it
        runs = GaugeMetricFamily("oku_runs", "Runs in the ledger, by state.", labels=["state"])
        for state, count in counts.items():
            runs.add_metric([state], count)
        yield runs
        yield GaugeMetricFamily(
            "oku_queue_oldest_seconds",
            "The longest time for which a pending run has been queued; 0 without one.",
            value=longest_s,
        )


LIFETIME_S = 1.0
_SHARE = 0.1
"""Building takes at most this share of the time: a large result is cached for longer."""


class MetricsCache:
    """Caches metrics for a second, or longer if building them takes long.

    Args:
        metrics: builds them.
        clock: monotonic seconds.
    """

    def __init__(self, metrics: Metrics, clock: Clock = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: dict[bool, tuple[float, tuple[bytes, str]]] = {}
        """By format: the expiry, and the result of `Metrics.expose`."""

    async def fetch(self, accept: str) -> tuple[bytes, str]:
        """Build `expose` in a thread; concurrent callers share the result."""
        until, kept = self._kept.get(protobuf_format.is_accepted(accept), (0.0, (b"", "")))
        if self._clock() < until:
            return kept
        async with self._lock:
            return await asyncio.to_thread(self.expose, accept)

    def expose(self, accept: str) -> tuple[bytes, str]:
        """All metrics and their content type, as in `Metrics.expose`."""
        began = self._clock()
        key = protobuf_format.is_accepted(accept)
        until, kept = self._kept.get(key, (0.0, (b"", "")))
        if began < until:
            return kept
        kept = self._metrics.expose(accept)
        ended = self._clock()
        self._kept[key] = (ended + max(LIFETIME_S, (ended - began) / _SHARE), kept)
        return kept

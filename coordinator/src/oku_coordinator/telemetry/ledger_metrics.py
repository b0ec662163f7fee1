"""Shows Prometheus the state of the ledger: whether it can be used, its runs, and the space of its disk."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.storage_health import StorageError, measure_space
from oku_coordinator.ledger.tables import run_table
from oku_core.process.clock import Clock


class LedgerCollector(Collector):
    """Gives the metrics of the ledger at each scrape.

    Args:
        ledger: the ledger.
        folder: where its file is.
        clock: gives Unix time.
    """

    def __init__(self, ledger: Ledger, folder: Path, clock: Clock) -> None:
        self._ledger = ledger
        self._folder = folder
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Build the metrics; without those that cannot be read now."""
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

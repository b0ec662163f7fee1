"""The output of a coordinator: metrics, samples, and lines for Loki."""

from oku_coordinator.ledger import Ledger
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.telemetry.coverage_recorder import CoverageRecorder
from oku_coordinator.telemetry.history_recorder import HistoryRecorder
from oku_coordinator.telemetry.prometheus.metrics import LedgerCollector, Metrics
from oku_coordinator.telemetry.prometheus.recent_runs import RecentRuns
from oku_coordinator.telemetry.publisher import Publisher
from oku_core.process.clock import SteadyClock


class Telemetry:
    """The parts of the output.

    Args:
        settings: the target of lines, if any.
        ledger: has the data, and stores records.
        metrics: count.
        clock: Unix time.
    """

    def __init__(
        self, settings: CoordinatorSettings, ledger: Ledger, metrics: Metrics, clock: SteadyClock
    ) -> None:
        self.metrics = metrics
        self.publisher = (
            None
            if settings.loki is None
            else Publisher(ledger, settings.loki, settings.most_outbox_bytes, metrics, clock)
        )
        self.recorder = HistoryRecorder(ledger, publishes=settings.loki is not None)
        self.coverage = CoverageRecorder(ledger, clock.now)
        self.recent_runs = RecentRuns(ledger, clock.now)
        metrics.show_ledger(LedgerCollector(ledger, settings.ledger_path.parent, clock.now))
        metrics.show_runs(self.recent_runs.read_runs)
        metrics.show_targets(self.recent_runs.read_targets)
        metrics.show_inner(self.recent_runs.read_inner)

"""Measurements of a worker while it has leases.

They are the lateness of its event loop, the load of its process, and changes of the machine's clock. Each
lease gets the worst of its time, and each progress the changes since the one before.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from oku_core.process.clock import Clock, SteadyClock
from oku_core.process.resources import measure_peak_rss_mb, measure_rss_mb
from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease
from oku_workers.meters.progress_meter import ProgressDelta, ProgressMeter
from oku_workers.meters.saturation import LagMeter, SaturationMeter

_log = logging.getLogger(__name__)


class RunSampler(Protocol):
    """Samples the runs of the leases in hand."""

    def sample_runs(self, now: float, leases: Mapping[Execution, OpenLease]) -> None:
        """Sample the changes; `now` is in monotonic seconds."""


class MeteredEngine(Protocol):
    """The engine at work, as far as it is measured."""

    def flush_counts(self) -> None:
        """Count responses that are buffered."""

    def take_host_late_s(self) -> float:
        """The largest lateness of the event loop of user code since the last call."""
        ...


Gauge = Callable[[], float]
"""Returns the current value of a measurement."""


@dataclass(frozen=True, kw_only=True)
class ProcessGauges:
    """The gauges of this process; a simulation has its own."""

    monotonic: Clock = time.monotonic
    cpu_s: Clock = time.process_time
    rss_mb: Gauge = measure_rss_mb
    peak_rss_mb: Gauge = measure_peak_rss_mb


class WorkerMeter:
    """Measures from `start` to `stop`; belongs to the thread of the event loop.

    Args:
        saturation: finds the requests that suffered from a busy worker.
        lag: measures how late the event loop is.
        engine: buffers counts, and may have an event loop of its own; None without one.
    """

    def __init__(
        self,
        clock: SteadyClock | None = None,
        gauges: ProcessGauges | None = None,
        saturation: SaturationMeter | None = None,
        lag: LagMeter | None = None,
        engine: MeteredEngine | None = None,
    ) -> None:
        self.clock = clock or SteadyClock()
        self.gauges = gauges or ProcessGauges()
        self._saturation = saturation or SaturationMeter(clock=self.gauges.monotonic)
        self._lag = lag or LagMeter(self.gauges.monotonic)
        self._engine = engine
        self._progress = ProgressMeter(self.gauges.cpu_s, self.gauges.monotonic)
        self._leases: dict[Execution, OpenLease] = {}
        self._sampler: RunSampler | None = None
        self._charged_cpu_s = 0.0
        self._lags_s: dict[str, float] = {}
        """The largest lateness since the last progress, by run."""

    def start(self, sampler: RunSampler) -> None:
        """Begin to measure; the sampler is called with each sample."""
        self._sampler = sampler
        self._lag.start(self)
        self._progress.start()

    def stop(self) -> None:
        """End."""
        self._lag.stop()

    def add(self, lease: OpenLease) -> None:
        """A lease is in hand from now on."""
        if not any(other.is_open for other in self._leases.values()):
            # Start-up and idle time belong to no run.
            self._charged_cpu_s = self.gauges.cpu_s()
        self._leases[lease.execution] = lease

    def forget(self, lease: OpenLease) -> None:
        """A lease is not in hand any more; the next progress is the last that it has a part in."""
        self._leases.pop(lease.execution, None)
        self._progress.forget(lease.execution)

    def sample(self, late_s: float) -> None:
        """Sample all leases, in an event loop that was this late."""
        self._flush_counts()
        unix_time = self.clock.now()
        under_way = [execution for execution in self._leases if execution.is_under_way]
        for execution in under_way:
            self._leases[execution].count_seconds(unix_time)
        host_late_s = self._engine.take_host_late_s() if self._engine is not None else 0.0
        for execution in under_way:
            self._record_lateness(execution, late_s)
            execution.max_lag_s = max(execution.max_lag_s, host_late_s)
        self._saturation.sample(under_way, max(late_s, host_late_s))
        self.sample_runs()

    def sample_runs(self) -> None:
        """Sample the runs, apart from the regular samples."""
        if self._sampler is not None:
            self._sampler.sample_runs(self.gauges.monotonic(), self._leases)

    def record_end(self, lease: OpenLease) -> None:
        """Write the measurements of its time into a lease that has ended, once."""
        if lease.is_measured:
            return
        lease.is_measured = True
        execution = lease.execution
        self._saturation.record_end(execution)
        self._record_clock_step()
        self._record_lateness(execution, self._lag.late_s)

    def charge_cpu(self) -> None:
        """Charge the processor time since the last call to the leases, by their numbers of ended requests."""
        spent_s = self.gauges.cpu_s() - self._charged_cpu_s
        self._charged_cpu_s += spent_s
        new = {
            lease: execution.ended - lease.charged_ended
            for execution, lease in self._leases.items()
            if execution.started_at and (execution.is_under_way or execution.ended != lease.charged_ended)
        }
        total = sum(new.values())
        for lease, ended in new.items():
            lease.charged_ended += ended
            lease.cpu_s += spent_s * ended / total if total else spent_s / len(new)

    def take_progress(self, most_in_flight: int) -> ProgressDelta:
        """The changes since the last call of this; at most as many are in flight as the engine reports."""
        self._flush_counts()
        self._record_clock_step()
        late_s = self._lag.late_s  # a loop that has not called for a while is late now, too
        for execution in self._leases:
            if execution.is_under_way:
                self._record_lateness(execution, late_s)
        lags_s, self._lags_s = self._lags_s, {}
        return self._progress.measure(self._leases, lags_s, most_in_flight)

    def _flush_counts(self) -> None:
        if self._engine is not None:
            self._engine.flush_counts()

    def _record_lateness(self, execution: Execution, late_s: float) -> None:
        """The event loop was late while an execution was under way: this is no lateness of another run."""
        execution.max_lag_s = max(execution.max_lag_s, late_s)
        run = execution.lease.run
        self._lags_s[run] = max(self._lags_s.get(run, 0.0), late_s)

    def _record_clock_step(self) -> None:
        step_s = self.clock.find_step()
        if step_s is None:
            return
        _log.warning("the clock of this machine was set by %+.1f s", step_s)
        for execution in self._leases:
            execution.clock_step_s = max(execution.clock_step_s, abs(step_s))

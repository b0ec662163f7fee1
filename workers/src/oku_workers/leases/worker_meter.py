"""What a worker measures of itself while it has leases.

How late its event loop is, how busy its process, and whether somebody has set the machine's clock: each
execution gets the worst of its time, and each progress what is new since the one before.
"""

import logging
import time

from oku_core.process.clock import SteadyClock
from oku_workers.executions.execution import Execution
from oku_workers.executions.progress_meter import ProgressDelta, ProgressMeter
from oku_workers.executions.saturation import SaturationMeter
from oku_workers.leases.lag_meter import LagMeter

_log = logging.getLogger(__name__)


class WorkerMeter:
    """Measures from `start` to `stop`; belongs to the thread of the event loop.

    Args:
        clock: of this process.
        saturation: finds the requests that suffered from a busy worker.
        lag: measures how late the event loop is; it has to call `look`.
    """

    def __init__(
        self,
        clock: SteadyClock | None = None,
        saturation: SaturationMeter | None = None,
        lag: LagMeter | None = None,
    ) -> None:
        self.clock = clock or SteadyClock()
        self._saturation = saturation or SaturationMeter()
        self._lag = lag or LagMeter(self.look)
        self._progress = ProgressMeter()
        self._executions: dict[Execution, None] = {}
        self._reported_cpu_s = 0.0

    def start(self) -> None:
        """Begin to measure."""
        self._lag.start()
        self._progress.start()

    def stop(self) -> None:
        """End."""
        self._lag.stop()

    def add(self, execution: Execution) -> None:
        """An execution is under way from now on."""
        if not self._executions:
            # Start-up and idle time belong to no run.
            self._reported_cpu_s = time.process_time()
        self._executions[execution] = None

    def forget(self, execution: Execution) -> None:
        """An execution is not under way any more; the next progress is the last that it has a part in."""
        self._executions.pop(execution, None)
        self._progress.forget(execution)

    def look(self, late_s: float) -> None:
        """One look at all executions, by an event loop that was so late."""
        self._saturation.look(self._executions, late_s)

    def settle(self, execution: Execution) -> None:
        """An execution has ended: write into it what was measured in its time."""
        self._saturation.settle(execution)
        self._note_clock_step()
        execution.max_lag_s = max(execution.max_lag_s, self._lag.worst_s)
        execution.cpu_s = time.process_time() - self._reported_cpu_s
        self._reported_cpu_s += execution.cpu_s

    def take_progress(self) -> tuple[ProgressDelta, float]:
        """What is new since the last call of this, and the largest lateness in that time, in seconds."""
        delta, lag_s = self._progress.take(self._executions), self._lag.take_worst_s()
        self._note_clock_step()
        for execution in self._executions:
            execution.max_lag_s = max(execution.max_lag_s, lag_s)
        return delta, lag_s

    def _note_clock_step(self) -> None:
        step_s = self.clock.find_step()
        if step_s is None:
            return
        _log.warning("the clock of this machine was set by %+.1f s", step_s)
        for execution in self._executions:
            execution.clock_step_s = max(execution.clock_step_s, abs(step_s))

"""One line in the log for each run that a worker has worked on, once that is over."""

import logging
import math
from dataclasses import dataclass, field

from oku_core.accounting.outcome import OUTCOMES, build_no_counts
from oku_workers.executions.execution import Execution

_log = logging.getLogger(__name__)

_MOST_RUNS = 4
"""Older runs are logged, even if they are not over."""


@dataclass
class _RunCounts:
    """What this worker has done of one run since its last line."""

    name: str
    counted: str
    outcomes: list[int] = field(default_factory=build_no_counts)
    began_at: float = math.inf
    ended_at: float = -math.inf

    def add(self, execution: Execution) -> None:
        """Count an attempt at a lease."""
        self.outcomes = [sum(pair) for pair in zip(self.outcomes, execution.outcomes, strict=True)]
        self.began_at = min(self.began_at, execution.started_at)
        self.ended_at = max(self.ended_at, execution.ended_at)

    def log(self, run: str) -> None:
        """Write the line."""
        requests, seconds = sum(self.outcomes), max(0.0, self.ended_at - self.began_at)
        counts = {
            outcome.value: count for outcome, count in zip(OUTCOMES, self.outcomes, strict=True) if count
        }
        name = f" ({self.name})" if self.name else ""
        said = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()) or "none has ended"
        context = {"run": run, "run_name": self.name, "requests": requests, "seconds": round(seconds, 3)}
        _log.info(
            "run %s%s: %s %s in %.1f s: %s",
            run, name, f"{requests:,}", self.counted, seconds, said,
            extra=context | counts,
        )  # fmt: skip


class RunLog:
    """Counts the outcomes of the leases of each run, and logs them when the run's turn is over.

    A run that was paused and resumed has a line for each time. Belongs to the thread of the event loop.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _RunCounts] = {}

    def add(self, execution: Execution) -> None:
        """Add a lease that is over."""
        if not execution.taken:
            return
        spec, run = execution.spec, execution.lease.run
        self._runs.setdefault(run, _RunCounts(spec.name, spec.counted)).add(execution)
        while len(self._runs) > _MOST_RUNS:
            self.end(next(iter(self._runs)))

    def list_others(self, current: str) -> list[str]:
        """The runs that are not logged, except for the one that has its turn."""
        return [run for run in self._runs if run != current]

    def end(self, run: str) -> None:
        """Log the outcomes of a run."""
        self._runs.pop(run).log(run)

    def close(self) -> None:
        """Log the outcomes of all runs: the worker ends."""
        for run in tuple(self._runs):
            self.end(run)

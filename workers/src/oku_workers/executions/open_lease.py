"""A lease that a worker holds, from its intake until its final checkpoint is confirmed.

Each checkpoint is the whole state of the lease, without the parts that have not changed since a confirmed
one. While nothing changes, the same checkpoint is sent again, with the same number.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from oku_core.messaging.checkpoint import LONGEST_REFUSAL, Checkpoint, LeaseFigures, Part
from oku_core.messaging.progress import LeaseProgress
from oku_core.process.redaction import redact
from oku_workers.executions.execution import Execution
from oku_workers.executions.open_part import OpenPart
from oku_workers.executions.tally import Tally


class _State(NamedTuple):
    """The part of a checkpoint that decides whether there is news."""

    taken: int
    ended: int
    end: int
    is_final: bool
    inner: int = 0


class OpenLease:
    """A lease with its execution and the state that the coordinator has confirmed.

    Args:
        execution: counts the requests.

    Attributes:
        refusal: why the worker cannot begin with it.
        cpu_s: the processor time of the worker for it.
        watched_s: seconds in which it was the one to take from and the target answered.
        underfilled_s: the part of these seconds in which the window was not full.
        is_asked: whether the coordinator waits for a checkpoint although nothing may have changed.
        is_measured: whether it has ended and contains all measurements of its time.
        sampled_taken: how many positions were taken at the last sample.
        sampled_ended: how many had ended at the last sample.
        charged_ended: how many had ended when processor time was last charged.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.refusal = ""
        self.cpu_s = self.watched_s = self.underfilled_s = 0.0
        self.is_asked = self.is_measured = False
        self.sampled_taken = self.sampled_ended = self.charged_ended = 0
        self._parts: dict[Tally, OpenPart] = {}
        self._inner: dict[Tally, OpenPart] = {}
        self._traced: dict[str, int] = {}
        """The number of the first checkpoint with a traceback, by its reason."""
        self._sequence = self._confirmed = self._sent = 0
        self._last: Checkpoint | None = None
        self._last_state = _State(0, 0, execution.ranges.length, is_final=False)
        self._final_sequence = 0

    @property
    def id(self) -> str:
        """The id of the lease."""
        return self.execution.lease.id

    @property
    def run(self) -> str:
        """The id of its run."""
        return self.execution.lease.run

    @property
    def is_open(self) -> bool:
        """Whether anything is left to take, or in flight."""
        return not self.execution.finished.done()

    @property
    def has_news(self) -> bool:
        """Whether there is anything that the broker has not got yet."""
        return self._sent < self._sequence or self._read_state() != self._last_state or self.is_asked

    @property
    def is_confirmed(self) -> bool:
        """Whether the coordinator has dealt with the newest checkpoint."""
        return self._confirmed >= self._sequence

    @property
    def is_forgettable(self) -> bool:
        """Whether its final checkpoint is confirmed."""
        return 0 < self._final_sequence <= self._confirmed

    def count_seconds(self, now: float, *, is_due: bool = False) -> None:
        """Assign new outcomes to their second, if one is over or a checkpoint is due; `now` is Unix time."""
        _enlist(self.execution.tallies, self._parts)
        _enlist(self.execution.inner.values(), self._inner)
        for part in (*self._parts.values(), *self._inner.values()):
            part.count_second(now, self._sequence + 1, is_due=is_due)

    def build_checkpoint(self, now: float, in_flight: Sequence[int], peak_rss_mb: float) -> Checkpoint:
        """Build the checkpoint of this instant.

        Args:
            now: Unix time.
            in_flight: the coordinates that are in flight.
            peak_rss_mb: the peak memory of the worker.
        """
        state = self._read_state()
        if self._last is not None and state == self._last_state and not self.is_asked:
            return self._last
        self.is_asked = False
        self.count_seconds(now, is_due=True)
        execution = self.execution
        self._sequence += 1
        if state.is_final and not self._final_sequence:
            self._final_sequence = self._sequence
        for part in self._inner.values():
            part.record_changes(self._sequence)
        has_changed = [part.record_changes(self._sequence) for part in self._parts.values()]
        if any(has_changed) and not state.is_final:
            execution.ended_at = now
        positions = [execution.ranges.position_of(coordinate) for coordinate in in_flight]
        self._last_state = state
        self._last = Checkpoint(
            lease=self.id,
            sequence=self._sequence,
            done=state.taken,
            end=state.end,
            in_flight=sorted((*positions, *execution.given_back)),
            untouched=sorted(execution.untouched),
            is_final=state.is_final,
            parts=self._list_changed(self._parts),
            figures=self._build_figures(peak_rss_mb),
            inner=self._list_changed(self._inner),
            tracebacks=self._list_new_tracebacks(),
            refusal="" if state.taken else _clean(self.refusal),
        )
        return self._last

    def on_sent(self, sequence: int) -> None:
        """The broker has a checkpoint."""
        self._sent = max(self._sent, sequence)

    def confirm(self, sequence: int) -> None:
        """The coordinator has dealt with a checkpoint."""
        self._confirmed = max(self._confirmed, min(sequence, self._sequence))
        for part in (*self._parts.values(), *self._inner.values()):
            part.confirm(self._confirmed)

    def build_progress(self) -> LeaseProgress:
        """How far it is."""
        execution = self.execution
        return LeaseProgress(execution.taken, execution.end, execution.outcomes)

    def _build_figures(self, peak_rss_mb: float) -> LeaseFigures:
        execution = self.execution
        has_begun = execution.taken > 0
        return LeaseFigures(
            started_at=execution.started_at if has_begun else 0.0,
            ended_at=execution.ended_at if has_begun else 0.0,
            cpu_s=self.cpu_s,
            peak_rss_mb=peak_rss_mb,
            max_lag_s=execution.max_lag_s,
            busy_share=execution.max_busy_share,
            saturated=execution.saturated,
            lagged=execution.lagged,
            clock_step_s=execution.clock_step_s,
            watched_s=self.watched_s,
            underfilled_s=self.underfilled_s,
        )

    def _list_new_tracebacks(self) -> dict[str, str]:
        """The tracebacks that no confirmed checkpoint contains."""
        return {
            reason: traceback
            for reason, traceback in self.execution.tracebacks.items()
            if self._traced.setdefault(reason, self._sequence) > self._confirmed
        }

    def _list_changed(self, parts: Mapping[Tally, OpenPart]) -> list[Part]:
        """The parts that have changed since a confirmed checkpoint."""
        return [part.build() for part in parts.values() if part.changed_in > self._confirmed]

    def _read_state(self) -> _State:
        execution = self.execution
        return _State(
            execution.taken,
            execution.ended,
            execution.end,
            execution.finished.done(),
            sum(tally.count for tally in execution.inner.values()),
        )


def _enlist(tallies: Iterable[Tally], parts: dict[Tally, OpenPart]) -> None:
    """Have a part for each tally."""
    for tally in tallies:
        if tally not in parts:
            parts[tally] = OpenPart(tally)


def _clean(refusal: str) -> str:
    """A refusal as text for a checkpoint; it may contain text of user code."""
    line = " ".join(redact(refusal).split())
    return "".join(char if char.isprintable() else "?" for char in line)[:LONGEST_REFUSAL]

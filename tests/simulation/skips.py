"""Sees which requests workers do not send: the real code says it to nobody but the account."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oku_core.schedule.lane import Lane
from oku_core.spec.load import build_schedule
from oku_workers.executions.scheduled_execution import ScheduledExecution

Note = Callable[[ScheduledExecution, int, int], None]


@contextmanager
def observe_skips(note: Note) -> Iterator[None]:
    """Tell of each request that is not sent: its execution, the cause, and its due time in nanoseconds."""
    skip = ScheduledExecution.skip

    def observed(
        self: ScheduledExecution, until_ns: int, cause: int, is_time_up: Callable[[], bool] = lambda: False
    ) -> None:
        before, first_ns = self.taken, self.due_ns
        skip(self, until_ns, cause, is_time_up)
        dues_ns = _list_dues(self, before, self.taken)
        for due_ns in dues_ns if first_ns is not None else ():
            note(self, cause, (first_ns or 0) + due_ns - dues_ns[0])

    ScheduledExecution.skip = observed  # type: ignore[method-assign]
    try:
        yield
    finally:
        ScheduledExecution.skip = skip  # type: ignore[method-assign]


def _list_dues(execution: ScheduledExecution, first: int, last: int) -> list[int]:
    """When the positions `first <= p < last` are due, by the clock of the schedule."""
    lease = execution.lease
    assert lease.wave is not None
    lane = Lane(build_schedule(execution.spec), lease.wave, lease.lane)
    return [due_ns for piece in execution.ranges.cut(first, last) for _, due_ns in lane.iter_dues(*piece)]

"""Sees which requests workers do not send: the real code says it to nobody but the account."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oku_workers.executions.scheduled_execution import ScheduledExecution


@contextmanager
def observe_skips(note: Callable[[ScheduledExecution, int], None]) -> Iterator[None]:
    """Tell of each request that is not sent, before it is accounted: its execution, and the cause."""
    skip = ScheduledExecution.skip

    def observed(self: ScheduledExecution, cause: int) -> None:
        note(self, cause)
        skip(self, cause)

    ScheduledExecution.skip = observed  # type: ignore[method-assign]
    try:
        yield
    finally:
        ScheduledExecution.skip = skip  # type: ignore[method-assign]

"""The account of requests that have due times: beside latencies, how late they were sent and answered."""

from typing import TYPE_CHECKING

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import CAUSE_REASONS, NOT_SENT, NOT_SENT_CAUSES, NotSentCause
from oku_workers.executions.distribution import Distribution
from oku_workers.executions.tally import Tally

if TYPE_CHECKING:
    from oku_workers.executions.execution import Execution

IN_FLIGHT_CAP, LATE = map(NOT_SENT_CAUSES.index, (NotSentCause.IN_FLIGHT_CAP, NotSentCause.LATE))
"""The causes that a worker knows of, as indices."""


class ScheduledTally(Tally):
    """The account of a lease of an open run.

    The arguments are as for `Tally`.

    Attributes:
        response_time: of answered requests; among `times`, like the next one.
        lateness: of requests that were sent and have ended.
    """

    __slots__ = ("lateness", "response_time")

    def __init__(
        self, execution: "Execution", phase: str = "", name: str = "", *, is_dense: bool = False
    ) -> None:
        super().__init__(execution, phase, name, is_dense=is_dense)
        self.response_time, self.lateness = Distribution(is_dense=is_dense), Distribution(is_dense=is_dense)
        self.times |= {Time.RESPONSE_TIME: self.response_time, Time.LATENESS: self.lateness}

    def answer(self, outcome: int, status: int, latency_us: int, received: int, lateness_us: int = 0) -> None:
        """Count a complete response; the arguments are as for `Tally.answer`."""
        self.outcomes[outcome] += 1
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.bytes_received += received
        self.latency.record(latency_us)
        self.response_time.record(latency_us + lateness_us)
        self.lateness.record(lateness_us)
        self._end()

    def complete(self, outcome: int, latency_us: int, lateness_us: int = 0) -> None:
        """Count an iteration that ran to its end; the arguments are as for `Tally.complete`."""
        self.outcomes[outcome] += 1
        self.latency.record(latency_us)
        self.response_time.record(latency_us + lateness_us)
        self.lateness.record(lateness_us)
        self._end()

    def fail(self, outcome: int, coordinate: int, reason: str, lateness_us: int = 0) -> None:
        """Count a request that ended without a complete response; the arguments are as for `Tally.fail`."""
        self.outcomes[outcome] += 1
        self.explain(outcome, coordinate, reason)
        self.lateness.record(lateness_us)
        self._end()

    def skip(self, cause: int, positions: range, requests: int | None = None) -> None:
        """Count requests that are not sent, and report them to the execution as ended.

        Args:
            cause: why, as an index.
            positions: where in the lease they are; they lie behind all that were skipped before.
            requests: how many they are, if they are only some of these positions, with the first and the
                last: they are counted, and not listed.
        """
        count = len(positions) if requests is None else requests
        self.outcomes[NOT_SENT] += count
        self.not_sent[cause] += count
        self.failures.record_many(NOT_SENT, positions, CAUSE_REASONS[cause], requests)

    def _end(self) -> None:
        execution = self.execution
        execution.ended += 1
        if execution.next_coordinate == execution.stop:
            execution.finish_if_done()

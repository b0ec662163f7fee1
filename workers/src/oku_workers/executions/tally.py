"""Outcomes of the requests of one part of a lease, counted as they end.

A request is counted in the tally that its execution had when it was taken. `answer` is the hot path: integer
arithmetic on attributes, no allocation that lasts. The reason of a failure is recorded separately: by `fail`,
or by `explain` before the answer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oku_core.accounting.histogram import HIGHEST_US, SUB_BUCKET_BITS
from oku_core.accounting.index_ranges import Room
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import FAILED_CHECK, OK, UNEXPECTED_STATUS, build_no_causes, build_no_counts
from oku_workers.executions.distribution import HALF_BITS, Distribution
from oku_workers.executions.failure_counts import Failures

if TYPE_CHECKING:
    from oku_workers.executions.execution import Execution


class Tally:
    """The account of one part of an execution.

    Args:
        execution: is notified of each request that has ended.
        phase: in which the requests were taken.
        name: of the target that they ask.
        is_dense: whether there will be many.

    Attributes:
        outcomes: the counts of outcomes in the order of `OUTCOMES`.
        statuses: the number of responses by status code.
        bytes_received: the bytes of response bodies.
        latency: of answered requests; among `times`.
        times: the distribution of each time that is measured.
        not_sent: the counts of causes in the order of `NOT_SENT_CAUSES`; zeros without due times.
        sent_per_second: how many requests were sent in each second, in Unix time of the coordinator's clock;
            nothing without due times.
        failures: which of the requests are not ok, and why.
        by_target: the tallies of all targets in this phase, in the order of the spec; empty if there is one.
    """

    __slots__ = (
        "_split",
        "by_target",
        "bytes_received",
        "execution",
        "failures",
        "latency",
        "name",
        "not_sent",
        "outcomes",
        "phase",
        "sent_per_second",
        "statuses",
        "times",
    )

    def __init__(
        self, execution: "Execution", phase: str = "", name: str = "", *, is_dense: bool = False
    ) -> None:
        self.execution = execution
        self.phase = phase
        self.name = name
        self.by_target: tuple[Tally, ...] = ()
        self.outcomes = build_no_counts()
        self.statuses: dict[int, int] = {}
        self.bytes_received = 0
        self.latency = Distribution(is_dense=is_dense)
        self.times = {Time.LATENCY: self.latency}
        self._split: tuple[Distribution, Distribution, Distribution] | None = None
        self.not_sent = build_no_causes()
        self.sent_per_second: dict[int, int] = {}
        self.failures = Failures(execution.room, execution.reason_room)

    def answer(
        self,
        outcome: int,
        status: int,
        latency_us: int,
        received: int,
        lateness_us: int = 0,  # noqa: ARG002  # only a request with a due time can be late
    ) -> None:
        """A complete response came; one that is not ok was explained before.

        Args:
            outcome: what it is counted as.
            status: its status.
            latency_us: how long after the request was sent.
            received: the bytes of its body.
            lateness_us: how long after its due time the request was sent.
        """
        self.outcomes[outcome] += 1
        statuses = self.statuses
        statuses[status] = statuses.get(status, 0) + 1
        self.bytes_received += received
        latency = self.latency  # as `Distribution.record`, whose call would take 7 % of all this
        if latency_us > HIGHEST_US:  # noqa: PLR1730  # half the time of min()
            latency_us = HIGHEST_US
        shift = latency_us.bit_length() - SUB_BUCKET_BITS
        latency.counts[(shift << HALF_BITS) + (latency_us >> shift) if shift > 0 else latency_us] += 1
        latency.sum_us += latency_us
        if latency_us < latency.min_us:  # noqa: PLR1730
            latency.min_us = latency_us
        if latency_us > latency.max_us:  # noqa: PLR1730
            latency.max_us = latency_us
        execution = self.execution
        execution.ended += 1
        if execution.next_coordinate == execution.stop:
            execution.finish_if_done()

    def answer_all(self, status: int, latencies_us: Sequence[int], received: int) -> None:
        """Complete responses came that are ok and have the same status; as `answer` for each of them.

        Args:
            status: their status.
            latencies_us: how long after its request was sent each of them came; at least one.
            received: the bytes of their bodies.
        """
        count = len(latencies_us)
        self.outcomes[OK] += count
        statuses = self.statuses
        statuses[status] = statuses.get(status, 0) + count
        self.bytes_received += received
        self.latency.record_all(latencies_us)
        execution = self.execution
        execution.ended += count
        if execution.next_coordinate == execution.stop:
            execution.finish_if_done()

    def complete(
        self,
        outcome: int,
        latency_us: int,
        lateness_us: int = 0,  # noqa: ARG002  # as in `answer`
    ) -> None:
        """An iteration has run to its end; one that is not ok was explained before.

        Args:
            outcome: what it is counted as.
            latency_us: how long it took.
            lateness_us: how long after its due time it began.
        """
        self.outcomes[outcome] += 1
        self.latency.record(latency_us)
        self.execution.ended += 1
        self.execution.finish_if_done()

    def explain(self, outcome: int, coordinate: int, reason: str) -> None:
        """Record why a request is not ok; the caller counts its outcome.

        Args:
            outcome: what it is counted as.
            coordinate: its place in the ledger.
            reason: a text of the catalogue (`oku_core.http_client.error_reason`).
        """
        self.failures.record(outcome, self.execution.ranges.position_of(coordinate), reason)

    def fail(
        self,
        outcome: int,
        coordinate: int,
        reason: str,
        lateness_us: int = 0,  # noqa: ARG002  # as in `answer`
    ) -> None:
        """Count a request that ended without a complete response; the arguments are as for `explain`."""
        self.outcomes[outcome] += 1
        self.explain(outcome, coordinate, reason)
        self.execution.ended += 1
        self.execution.finish_if_done()

    def record_connection(self, connect_us: int, tls_us: int | None) -> None:
        """Record a connection made for a request, which may still fail.

        Args:
            connect_us: how long TCP took.
            tls_us: how long the TLS handshake took; None without TLS.
        """
        self._open_time(Time.CONNECT).record(connect_us)
        if tls_us is not None:
            self._open_time(Time.TLS).record(tls_us)

    def record_split(self, latency_us: int, first_byte_us: int) -> None:
        """A complete response came in several pieces; `answer` is called as for all others.

        Args:
            latency_us: how long after the request was sent it was complete.
            first_byte_us: how long after the request was sent its first piece came.
        """
        split = self._split
        if split is None:
            open_time = self._open_time
            split = self._split = (
                open_time(Time.SPLIT_LATENCY), open_time(Time.SPLIT_FIRST_BYTE), open_time(Time.TRANSFER)
            )  # fmt: skip
        latency, first_byte, transfer = split
        latency_us = min(latency_us, HIGHEST_US)
        first_byte_us = min(first_byte_us, latency_us)
        latency.record(latency_us)
        first_byte.record(first_byte_us)
        transfer.record(latency_us - first_byte_us)  # they add up exactly, also beyond the range

    def _open_time(self, time: Time) -> Distribution:
        if time not in self.times:
            self.times[time] = Distribution()
        return self.times[time]

    def compact(self) -> None:
        """Take less memory: few requests are still to end."""
        for distribution in self.times.values():
            distribution.compact()


_ANSWERED = frozenset({OK, UNEXPECTED_STATUS, FAILED_CHECK})


class InnerTally(Tally):
    """Outcomes of the inner requests of one name in one phase of an execution.

    User code makes them within iterations. They are counted beside the account of their lease, and never sent
    again.

    Args:
        execution: of whose iterations they are.
        phase: in which these were taken.
        name: of the requests.

    Attributes:
        count: how many there are.
    """

    __slots__ = ("count",)

    def __init__(self, execution: "Execution", phase: str, name: str) -> None:
        super().__init__(execution, phase, name)
        self.failures = Failures(Room(0))  # their own part lists the failed iterations
        self.count = 0

    def add(self, outcome: int, status: int, latency_us: int, received: int) -> None:
        """A request has ended; one that is not ok is explained, too.

        Args:
            outcome: what it is counted as.
            status: its status; 0 if it has none.
            latency_us: how long it took.
            received: the bytes of its body.
        """
        self.count += 1
        self.outcomes[outcome] += 1
        self.bytes_received += received
        if outcome in _ANSWERED:
            if status:
                self.statuses[status] = self.statuses.get(status, 0) + 1
            self.latency.record(latency_us)

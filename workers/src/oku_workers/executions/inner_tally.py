"""The account of inner requests of one name: those that user code makes within iterations.

They are counted beside the account of their lease: they sum to nothing, and nobody sends them again.
"""

from typing import TYPE_CHECKING

from oku_core.accounting.range_set import Room
from oku_workers.executions.failure_counts import Failures
from oku_workers.executions.tally import FAILED_CHECK, OK, UNEXPECTED_STATUS, Tally

if TYPE_CHECKING:
    from oku_workers.executions.execution import Execution

_ANSWERED = frozenset({OK, UNEXPECTED_STATUS, FAILED_CHECK})


class InnerTally(Tally):
    """What came of the inner requests of one name in one phase of an execution.

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
        self.failures = Failures(Room(0))  # which iterations failed, their own part says
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

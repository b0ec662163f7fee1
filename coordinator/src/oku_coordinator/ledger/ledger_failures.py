"""The failed requests of the runs of a ledger."""

from dataclasses import dataclass

from oku_coordinator.ledger.rules import failed_requests
from oku_coordinator.ledger.rules.failed_requests import FailedSpan
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction


@dataclass(frozen=True)
class FailedRequests:
    """Which requests of a run are accounted and not ok, at one instant.

    Attributes:
        spans: their indices, in rising order; each span failed in one way.
        requests: how many they are, also those that are in no span, as there was no room for them.
    """

    spans: list[FailedSpan]
    requests: int

    @property
    def unlisted(self) -> int:
        """How many are in no span."""
        return self.requests - sum(span.stop - span.start for span in self.spans)


class LedgerFailures:
    """What can be asked of failed requests."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def fetch(self, run: str) -> FailedRequests:
        """The failed requests of a run; `UnknownRunError` when there is none with that id."""

        def fetch(transaction: Transaction) -> FailedRequests:
            requests = failed_requests.count_failed(transaction, run)
            return FailedRequests(list(failed_requests.read_failed(transaction, run)), requests)

        return self._file.read(fetch)

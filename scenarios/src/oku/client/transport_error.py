"""The error of a request that has got no complete answer."""

from oku_core.accounting.outcome import OUTCOMES, Outcome

TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR = map(
    OUTCOMES.index, (Outcome.TIMEOUT, Outcome.CONNECT_ERROR, Outcome.DISCONNECTED, Outcome.PROTOCOL_ERROR)
)


class TransportError(Exception):
    """There is no complete answer.

    Attributes:
        outcome: what the request counts as, a place in `OUTCOMES`.
        cause: the error that was met, or a text of ours.
    """

    def __init__(self, outcome: int, cause: object) -> None:
        super().__init__(str(cause))
        self.outcome = outcome
        self.cause = cause

"""What can become of a request: outcomes in a fixed order, so that as many integers are a full account.

Two are of open runs alone, whose requests have due times: `not_sent`, which has causes, and `lost`.
"""

from collections.abc import Sequence
from enum import StrEnum


class Outcome(StrEnum):
    """What became of one request, or of one iteration of user code."""

    OK = "ok"
    """A complete response with an expected status."""
    UNEXPECTED_STATUS = "unexpected_status"
    """A complete response with another status."""
    TIMEOUT = "timeout"
    """No complete response within the timeout of the spec, connecting included."""
    CONNECT_ERROR = "connect_error"
    """No connection: refused, unreachable, name not found, TLS handshake failed. Nothing was sent."""
    DISCONNECTED = "disconnected"
    """The connection ended before the response was complete."""
    PROTOCOL_ERROR = "protocol_error"
    """The response was not valid HTTP."""
    NOT_SENT = "not_sent"
    """It was not sent in time; `NotSentCause` says why."""
    LOST = "lost"
    """Its worker died with it, and its time is past. It may have been sent."""
    FAILED_CHECK = "failed_check"
    """A complete response with an expected status that failed another check of its target; an iteration in
    which a request or a check failed."""
    EXCEPTION = "exception"
    """User code raised an exception."""


class NotSentCause(StrEnum):
    """Why a request was not sent."""

    IN_FLIGHT_CAP = "in_flight_cap"
    """As many requests as are allowed were in flight when it was due."""
    LATE = "late"
    """Its worker was late for another reason."""
    NOT_DEALT = "not_dealt"
    """No worker had it."""


OUTCOMES: tuple[Outcome, ...] = tuple(Outcome)
"""The order in which outcomes stand in lists of counts, on the wire and in the ledger."""
NOT_SENT_CAUSES: tuple[NotSentCause, ...] = tuple(NotSentCause)
"""The order in which causes stand in lists of counts, on the wire and in the ledger."""
NOT_SENT, LOST = OUTCOMES.index(Outcome.NOT_SENT), OUTCOMES.index(Outcome.LOST)
"""The places of the outcomes of requests that no worker has seen end."""
FAILED_CHECK = OUTCOMES.index(Outcome.FAILED_CHECK)
"""The place of the outcome of requests whose answers failed a check."""
NOT_DEALT = NOT_SENT_CAUSES.index(NotSentCause.NOT_DEALT)
"""The place of the cause that no worker knows of."""


def build_no_counts() -> list[int]:
    """A zero for each outcome, the account of no request at all."""
    return [0] * len(OUTCOMES)


def build_no_causes() -> list[int]:
    """A zero for each of `NOT_SENT_CAUSES`."""
    return [0] * len(NOT_SENT_CAUSES)


def is_account(counts: Sequence[int]) -> bool:
    """Whether these are counts, one for each of `OUTCOMES`."""
    return len(counts) == len(OUTCOMES) and min(counts) >= 0


def count_answered(outcomes: Sequence[int]) -> int:
    """How many of the requests were answered in full; as many are in the latency histogram."""
    return outcomes[0] + outcomes[1] + outcomes[FAILED_CHECK]


def count_sent(outcomes: Sequence[int]) -> int:
    """How many of the requests were sent and have ended."""
    return sum(outcomes) - outcomes[NOT_SENT] - outcomes[LOST]


def build_cause_counts(not_sent: Sequence[int]) -> dict[str, int]:
    """Counts in the order of `NOT_SENT_CAUSES` as a mapping with the names of all."""
    return {cause.value: count for cause, count in zip(NOT_SENT_CAUSES, not_sent, strict=True)}


def build_outcome_counts(outcomes: Sequence[int]) -> dict[str, int]:
    """Counts in the order of `OUTCOMES` as a mapping with the names of all."""
    return {outcome.value: count for outcome, count in zip(OUTCOMES, outcomes, strict=True)}

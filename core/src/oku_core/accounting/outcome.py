"""How a request can end: six outcomes in a fixed order, so that six integers are a full account."""

from collections.abc import Sequence
from enum import StrEnum


class Outcome(StrEnum):
    """How one request ended."""

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


OUTCOMES: tuple[Outcome, ...] = tuple(Outcome)
"""The order in which outcomes stand in lists of counts, on the wire and in the ledger."""


def build_no_counts() -> list[int]:
    """Six zeros, the account of no request at all."""
    return [0] * len(OUTCOMES)


def is_account(counts: Sequence[int]) -> bool:
    """Whether these are six counts, one for each of `OUTCOMES`."""
    return len(counts) == len(OUTCOMES) and min(counts) >= 0


def count_answered(outcomes: Sequence[int]) -> int:
    """How many of the requests were answered in full; as many are in the latency histogram."""
    return outcomes[0] + outcomes[1]


def build_outcome_counts(outcomes: Sequence[int]) -> dict[str, int]:
    """Counts in the order of `OUTCOMES` as a mapping with all six names."""
    return {outcome.value: count for outcome, count in zip(OUTCOMES, outcomes, strict=True)}

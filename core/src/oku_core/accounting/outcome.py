"""Outcomes of requests in a fixed order, and the reasons counted for each of them.

As many integers as there are outcomes are a full account. Two are of open runs alone, whose requests have due
times: `not_sent`, which has causes, and `lost`. Every outcome but `ok` has reasons, short texts of a bounded
catalogue, which sum to its count. A reason names no host, port or index, so that one cause is one reason,
however many requests and workers meet it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from oku_core.digits import parse_digits


class Outcome(StrEnum):
    """The outcome of one request, or of one iteration of user code."""

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
    """It was not sent in time; `NotSentCause` has the reason."""
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
(
    OK, UNEXPECTED_STATUS, TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, NOT_SENT, LOST, FAILED_CHECK,
    EXCEPTION,
) = range(len(OUTCOMES))  # fmt: skip
"""The outcomes as their places in `OUTCOMES`, for the hot path."""
NOT_DEALT = NOT_SENT_CAUSES.index(NotSentCause.NOT_DEALT)
"""The place of the cause that no worker knows of."""


def build_no_counts() -> list[int]:
    """A zero for each outcome, the account of no request at all."""
    return [0] * len(OUTCOMES)


def build_no_causes() -> list[int]:
    """A zero for each of `NOT_SENT_CAUSES`."""
    return [0] * len(NOT_SENT_CAUSES)


def sum_counts(counts: Iterable[Sequence[int]]) -> list[int]:
    """The sum of several counts of outcomes."""
    return [sum(column) for column in zip(build_no_counts(), *counts, strict=True)]


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


MOST_REASONS = 32
"""How many reasons one part of a lease distinguishes; the rest counts as `OTHER` of its outcome."""
MOST_KEPT_REASONS = 64
"""The same of an account, which many workers fill."""
LONGEST_REASON = 120
"""The longest reason, in characters."""
OTHER = "other"
"""Stands for reasons beyond the bound."""
WORKER_LOST = "worker lost"
"""The reason of lost requests."""
UNTRUSTED = "certificate not trusted"
"""How the reasons begin for which the certificate of a server was refused."""
STATUS = "status"
"""How the reasons begin of responses with an unexpected status, such as `status 500`."""
CAUSE_REASONS: tuple[str, ...] = tuple(cause.replace("_", " ") for cause in NOT_SENT_CAUSES)
"""The reasons for which requests are not sent, in the order of `NOT_SENT_CAUSES`."""
FAILING = range(1, len(OUTCOMES))
"""The places of all outcomes but `ok`."""


class ReasonCount(msgspec.Struct, frozen=True, array_like=True):
    """How many requests failed for one reason.

    Attributes:
        outcome: what they are counted as, a place in `OUTCOMES`.
        reason: why.
        requests: how many they are.
        first: the lowest of them, a position or an index; -1 if it is not known.
        last: the highest of them, by the same rule.
    """

    outcome: int
    reason: str
    requests: int
    first: int = -1
    last: int = -1

    @property
    def key(self) -> tuple[int, str]:
        """What it counts."""
        return self.outcome, self.reason

    def join(self, other: "ReasonCount") -> "ReasonCount":
        """The sum of both, under the name of this one."""
        firsts = [count.first for count in (self, other) if count.first >= 0]
        return ReasonCount(
            self.outcome,
            self.reason,
            self.requests + other.requests,
            min(firsts, default=-1),
            max(self.last, other.last),
        )


def read_status(reason: str) -> int | None:
    """The status in a reason, `status 500` or `login: status 500`; None for other reasons."""
    word, _, digits = reason.rpartition(": ")[2].partition(" ")
    return parse_digits(digits) if word == STATUS else None


def find_sum_fault(reasons: Iterable[ReasonCount], outcomes: Sequence[int]) -> str | None:
    """Find an outcome that its reasons do not sum to; None if they all do."""
    sums: Counter[int] = Counter()
    for count in reasons:
        sums[count.outcome] += count.requests
    for place in FAILING:
        if sums[place] != outcomes[place]:
            return f"{outcomes[place]} are {OUTCOMES[place]}, but their reasons sum to {sums[place]}"
    return None


def find_reason_fault(reasons: Sequence[ReasonCount], outcomes: Sequence[int]) -> str | None:
    """Return the fault of a worker's reasons; None if they are valid."""
    if not reasons and not any(outcomes[1:]):
        return None
    if len(reasons) > MOST_REASONS + len(FAILING) or len({count.key for count in reasons}) != len(reasons):
        return "there are too many reasons, or one comes twice"
    for count in reasons:
        if count.outcome not in FAILING or not 0 < len(count.reason) <= LONGEST_REASON:
            return "a reason has no outcome that it may be of, or is not one line"
        if not count.reason.isprintable() or count.requests <= 0 or not 0 <= count.first <= count.last:
            return f"the reason {count.reason!r} has counts or positions that cannot be"
    return find_sum_fault(reasons, outcomes)

"""Why requests failed: short texts of a bounded catalogue, counted for each outcome.

Every outcome but `ok` has reasons, and they sum to its count. A reason names no host, port or index, so that
one cause is one reason, however many requests and workers meet it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from oku_core.accounting.outcome import NOT_SENT_CAUSES, OUTCOMES

MOST_REASONS = 32
"""How many reasons one part of a lease tells apart; the rest counts as `OTHER` of its outcome."""
MOST_KEPT_REASONS = 64
"""The same of an account, which many workers fill."""
LONGEST_REASON = 120
"""The longest reason, in characters."""
OTHER = "other"
"""Stands for reasons beyond the bound."""
WORKER_LOST = "worker lost"
"""The reason of what is lost."""
UNTRUSTED = "certificate not trusted"
"""How the reasons begin for which the certificate of a server was refused."""
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


def find_sum_fault(reasons: Iterable[ReasonCount], outcomes: Sequence[int]) -> str | None:
    """Say which outcome its reasons do not sum to; None if they all do."""
    sums: Counter[int] = Counter()
    for count in reasons:
        sums[count.outcome] += count.requests
    for place in FAILING:
        if sums[place] != outcomes[place]:
            return f"{outcomes[place]} are {OUTCOMES[place]}, but their reasons sum to {sums[place]}"
    return None


def find_reason_fault(reasons: Sequence[ReasonCount], outcomes: Sequence[int]) -> str | None:
    """Say what is wrong with the reasons that a worker tells of; None if nothing is."""
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

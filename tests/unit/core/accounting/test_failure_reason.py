"""Reasons of failures: they sum to outcomes, and join without losing a request."""

from tests.kit.outcomes import make_counts

from oku_core.accounting.failure_reason import (
    ReasonCount,
    find_reason_fault,
    find_sum_fault,
)
from oku_core.accounting.outcome import OUTCOMES, Outcome

TIMEOUT = OUTCOMES.index(Outcome.TIMEOUT)


def test_joined_counts_have_the_first_and_last_of_both() -> None:
    """An index that is not known says nothing."""
    a, b = ReasonCount(TIMEOUT, "late", 2, 5, 9), ReasonCount(TIMEOUT, "late", 3, 7, 30)
    assert a.join(b) == ReasonCount(TIMEOUT, "late", 5, 5, 30)
    unknown = ReasonCount(TIMEOUT, "late", 1)
    assert a.join(unknown) == ReasonCount(TIMEOUT, "late", 3, 5, 9)
    assert unknown.join(a) == ReasonCount(TIMEOUT, "late", 3, 5, 9)


def test_reasons_must_sum_to_each_outcome() -> None:
    """The outcome that they do not sum to is named."""
    reasons = [ReasonCount(TIMEOUT, "late", 2, 0, 1)]
    assert find_sum_fault(reasons, make_counts(1, timeout=3)) == ("3 are timeout, but their reasons sum to 2")


def test_more_reasons_than_a_worker_tells_apart_are_a_fault() -> None:
    """Nobody fills the ledger with reasons."""
    reasons = [ReasonCount(TIMEOUT, f"reason {place}", 1, 0, 0) for place in range(50)]
    assert find_reason_fault(reasons, make_counts(timeout=50)) is not None

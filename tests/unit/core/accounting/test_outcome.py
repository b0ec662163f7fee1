import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting.outcome import (
    NOT_SENT_CAUSES,
    OUTCOMES,
    Outcome,
    ReasonCount,
    build_cause_counts,
    build_no_causes,
    build_no_counts,
    build_outcome_counts,
    count_answered,
    count_sent,
    find_reason_fault,
    find_sum_fault,
    is_account,
)


def test_answered_and_sent_are_sums_of_outcomes() -> None:
    """A response counts as an answer whatever its status, and nothing else does."""
    assert count_answered([1, 20, 300, 4000, 50_000, 600_000, 7, 8, 9_000_000, 10]) == 9_000_021
    # Sent is what has ended as far as a worker has seen.
    assert count_sent([1, 20, 300, 4000, 50_000, 600_000, 7_000_000, 80_000_000, 9, 10]) == 654_340


def test_the_order_of_outcomes_and_causes_is_that_of_the_wire() -> None:
    """Counts in a message or in a ledger of any age mean the same outcomes: new ones come at the end."""
    assert [outcome.value for outcome in OUTCOMES] == [
        "ok", "unexpected_status", "timeout", "connect_error", "disconnected", "protocol_error",
        "not_sent", "lost", "failed_check", "exception",
    ]  # fmt: skip
    # The order of causes is that of the wire.
    assert [cause.value for cause in NOT_SENT_CAUSES] == ["in_flight_cap", "late", "not_dealt"]
    assert build_no_causes() == [0, 0, 0]


def test_counts_get_their_names() -> None:
    """Every outcome is named, including those that did not happen."""
    assert build_outcome_counts([1, 0, 2, 0, 0, 3, 0, 4, 5, 6]) == {
        Outcome.OK: 1,
        Outcome.UNEXPECTED_STATUS: 0,
        Outcome.TIMEOUT: 2,
        Outcome.CONNECT_ERROR: 0,
        Outcome.DISCONNECTED: 0,
        Outcome.PROTOCOL_ERROR: 3,
        Outcome.NOT_SENT: 0,
        Outcome.LOST: 4,
        Outcome.FAILED_CHECK: 5,
        Outcome.EXCEPTION: 6,
    }
    # Causes get their names. Every cause is named.
    assert build_cause_counts([1, 0, 2]) == {"in_flight_cap": 1, "late": 0, "not_dealt": 2}
    for counts in [[], [1] * 7, [1] * 9, [1] * 11]:
        # An account of more or fewer counts gets no names.
        with pytest.raises(ValueError, match="zip"):
            build_outcome_counts(counts)


def test_no_request_has_zeros_of_its_own() -> None:
    """Two empty accounts are equal, but counting in one leaves the other alone."""
    counts = build_no_counts()
    counts[0] += 1
    assert build_no_counts() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([0] * 10, True),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], True),
        ([], False),
        ([1] * 9, False),
        ([1] * 11, False),
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, -1], False),
    ],
)
def test_an_account_is_a_count_of_each_outcome(counts: list[int], expected: bool) -> None:  # noqa: FBT001  # a column of the table above
    """An account has exactly one count for each outcome, none of them negative."""
    assert is_account(counts) is expected


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
    # More reasons than a worker tells apart are a fault. Nobody fills the ledger with reasons.
    reasons = [ReasonCount(TIMEOUT, f"reason {place}", 1, 0, 0) for place in range(50)]
    assert find_reason_fault(reasons, make_counts(timeout=50)) is not None

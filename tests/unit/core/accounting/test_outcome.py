import pytest

from oku_core.accounting.outcome import (
    OUTCOMES,
    Outcome,
    build_no_counts,
    build_outcome_counts,
    count_answered,
    is_account,
)


def test_the_order_of_outcomes_is_that_of_the_wire() -> None:
    """Six integers in a report or in a ledger of any age mean the same outcomes."""
    assert [outcome.value for outcome in OUTCOMES] == [
        "ok",
        "unexpected_status",
        "timeout",
        "connect_error",
        "disconnected",
        "protocol_error",
    ]


def test_answered_is_what_has_a_complete_response() -> None:
    """A response counts as an answer whatever its status, and nothing else does."""
    assert count_answered([1, 20, 300, 4000, 50_000, 600_000]) == 21


def test_counts_get_their_names() -> None:
    """Every outcome is named, including those that did not happen."""
    assert build_outcome_counts([1, 0, 2, 0, 0, 3]) == {
        Outcome.OK: 1,
        Outcome.UNEXPECTED_STATUS: 0,
        Outcome.TIMEOUT: 2,
        Outcome.CONNECT_ERROR: 0,
        Outcome.DISCONNECTED: 0,
        Outcome.PROTOCOL_ERROR: 3,
    }


@pytest.mark.parametrize("counts", [[], [1] * 5, [1] * 7])
def test_an_account_of_other_than_six_counts_gets_no_names(counts: list[int]) -> None:
    """A count is never dropped or made up for lack of a name."""
    with pytest.raises(ValueError, match="zip"):
        build_outcome_counts(counts)


def test_no_request_has_six_zeros_of_its_own() -> None:
    """Two empty accounts are equal, but counting in one leaves the other alone."""
    counts = build_no_counts()
    counts[0] += 1
    assert build_no_counts() == [0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([0] * 6, True),
        ([1, 2, 3, 4, 5, 6], True),
        ([], False),
        ([1] * 5, False),
        ([1] * 7, False),
        ([1, 1, 1, 1, 1, -1], False),
    ],
)
def test_an_account_is_six_counts(counts: list[int], expected: bool) -> None:  # noqa: FBT001  # a column of the table above
    """An account has exactly six counts, none of them negative."""
    assert is_account(counts) is expected

"""What a worker notes of failed requests."""

from oku_core.accounting.index_ranges import Room
from oku_core.accounting.outcome import (
    CONNECT_ERROR,
    MOST_REASONS,
    NOT_SENT,
    OTHER,
    TIMEOUT,
    Outcome,
    ReasonCount,
)
from oku_workers.executions.failure_counts import Failures


def test_a_reason_has_its_count_and_its_first_and_last_position() -> None:
    """Requests end in any order."""
    failures = Failures(Room(9))
    for position in (7, 3, 9):
        failures.record(TIMEOUT, position, "no answer within 10s")
    failures.record(CONNECT_ERROR, 4, "refused")
    assert failures.build_reasons() == [
        ReasonCount(TIMEOUT, "no answer within 10s", 3, 3, 9),
        ReasonCount(CONNECT_ERROR, "refused", 1, 4, 4),
    ]
    assert failures.build_failed() == {
        Outcome.TIMEOUT: [3, 1, 3, 1, 1, 1],
        Outcome.CONNECT_ERROR: [4, 1],
    }
    assert failures.build_failed_reasons() == {Outcome.TIMEOUT: [1, -2], Outcome.CONNECT_ERROR: [2]}
    # Reasons beyond the bound are others of their outcome. Their requests are still counted.
    failures = Failures(Room(9))
    for position in range(MOST_REASONS + 5):
        failures.record(TIMEOUT, position, f"reason {position}")
    reasons = failures.build_reasons()
    assert len(reasons) == MOST_REASONS + 1
    assert reasons[-1] == ReasonCount(TIMEOUT, OTHER, 5, MOST_REASONS, MOST_REASONS + 4)
    assert failures.build_failed() == {Outcome.TIMEOUT: [0, MOST_REASONS + 5]}
    # Positions without room are counted and not named. The count says how many are missing.
    failures = Failures(Room(1))
    for position in (0, 2, 4):
        failures.record(TIMEOUT, position, "late")
    assert failures.build_failed() == {Outcome.TIMEOUT: [0, 1]}
    assert failures.build_reasons() == [ReasonCount(TIMEOUT, "late", 3, 0, 4)]


def test_many_fail_at_once_as_one_after_the_other() -> None:
    """Those that are some of their positions are counted, with the first and the last, and not named."""
    for fills_reasons in (False, True):
        at_once, one_by_one = Failures(Room(3)), Failures(Room(3))
        for failures in (at_once, one_by_one):
            for position in range(MOST_REASONS if fills_reasons else 1):
                failures.record(TIMEOUT, position, f"reason {position}")
        for positions in (range(50, 60), range(60, 61), range(70, 75), range(80, 90), range(90, 99)):
            at_once.record_many(NOT_SENT, positions, "late")
            for position in positions:
                one_by_one.record(NOT_SENT, position, "late")
        assert at_once.build_reasons() == one_by_one.build_reasons()
        assert at_once.build_failed() == one_by_one.build_failed()
        at_once.record_many(NOT_SENT, range(100, 111), "late", 3)
        assert at_once.build_failed() == one_by_one.build_failed()
        reason = OTHER if fills_reasons else "late"
        assert at_once.build_reasons()[-1] == ReasonCount(NOT_SENT, reason, 38, 50, 110)


def test_no_position_is_lost_because_reasons_alternate() -> None:
    """Positions have room of their own; without room for its reason, a position has none, for good."""
    failures = Failures(Room(1), Room(5))
    for position in range(9):
        failures.record(TIMEOUT, position, f"reason {position % 3}")
    assert failures.build_failed() == {Outcome.TIMEOUT: [0, 9]}
    assert failures.build_failed_reasons() == {Outcome.TIMEOUT: [1, 2, 3, 1, 2, 0, -3]}

from collections.abc import Callable
from typing import Any

import pytest

from oku_core.messaging.lease import Report
from oku_core.results.summary import Flag, Validity
from oku_core.results.validity import FEWEST_STRAINED, build_validity, flag_report


def judge(**changes: Any) -> list[Validity]:
    """Build the flags of a run of a hundred requests that were all ok, apart from `changes`."""
    values: dict[str, Any] = {"kept": [], "outcomes": [100, 0, 0, 0, 0, 0], "resent_at_most": 0}
    return build_validity(**{"windows": 1, "imbalance": None} | values | changes)


def test_a_report_is_flagged_for_the_requests_that_were_affected(
    build_report: Callable[..., Report],
) -> None:
    """The flag says how many requests were affected, and has the figure behind it."""
    report = build_report(done=10, busy_share=0.95, saturated=4, max_lag_s=0.3, lagged=2)
    assert flag_report(report) == [(Flag.WORKER_SATURATED, 4, 0.95), (Flag.LOOP_LAG, 2, 0.3)]


def test_a_report_without_affected_requests_is_not_flagged(build_report: Callable[..., Report]) -> None:
    """The report concerns no request, whatever its worker did meanwhile."""
    assert flag_report(build_report(busy_share=1.0, max_lag_s=3.0)) == []
    assert flag_report(build_report(done=0, clock_step_s=5.0)) == []


@pytest.mark.parametrize("flag", [Flag.WORKER_SATURATED, Flag.LOOP_LAG])
def test_what_moves_no_figure_is_not_flagged(flag: Flag) -> None:
    """One second of a long run says little about the whole run."""
    outcomes, least = [100_000, 0, 0, 0, 0, 0], round(FEWEST_STRAINED * 100_000)

    assert judge(outcomes=outcomes, kept=[(flag, least - 1, 1.0)]) == []
    (validity,) = judge(outcomes=outcomes, kept=[(flag, least, 1.0)])
    assert (validity.requests, validity.share) == (least, 0.01)


def test_a_lost_worker_is_flagged_whatever_its_share() -> None:
    """A lost worker is an event, not a figure."""
    outcomes = [100_000, 0, 0, 0, 0, 0]
    (validity,) = judge(outcomes=outcomes, kept=[(Flag.WORKER_LOST, 5, 0.0)])
    assert validity.requests == 5


def test_a_run_without_a_fault_has_no_flag() -> None:
    """All requests were answered once, in one window, and the account balances."""
    assert judge() == []


@pytest.mark.parametrize(
    ("changes", "flag", "requests", "said"),
    [
        ({"outcomes": [90, 4, 1, 2, 3, 0]}, Flag.UNANSWERED, 6, "in no latency figure"),
        ({"resent_at_most": 7}, Flag.RESENT, 7, "each is counted once"),
        ({"windows": 3}, Flag.INTERRUPTED, 100, "in 3 windows"),
        ({"imbalance": "1 is not 2"}, Flag.UNBALANCED, 100, "1 is not 2"),
        ({"kept": [(Flag.WORKER_SATURATED, 50, 0.97)]}, Flag.WORKER_SATURATED, 50, "busy for up to 97% of"),
        ({"kept": [(Flag.LOOP_LAG, 30, 0.25)]}, Flag.LOOP_LAG, 30, "up to 250 ms late"),
        ({"kept": [(Flag.WORKER_LOST, 20, 0.0)]}, Flag.WORKER_LOST, 20, "lost workers"),
    ],
)  # fmt: skip
def test_what_may_mislead_says_so(changes: dict[str, Any], flag: Flag, requests: int, said: str) -> None:
    """Each flag tells what it means and how many requests it concerns."""
    (validity,) = judge(**changes)
    is_beside = flag in (Flag.RESENT, Flag.WORKER_LOST)
    assert (validity.flag, validity.requests) == (flag, requests)
    assert validity.share == (None if is_beside else requests / 100)
    assert said in validity.detail

from typing import Any

import pytest

from oku_coordinator.validity import LAG_LIMIT_S, SATURATED_SHARE, build_validity, judge_report
from oku_core.lease import Report
from oku_core.summary import Flag, Validity


def build_report(**changes: Any) -> Report:
    """A report of one request, as far as flags are concerned."""
    names = {"lease": "l1", "execution": "e1", "worker": "w1", "boot": "b1"}
    values: dict[str, Any] = {**names, "start": 0, "done": 1, "started_at": 0.0, "ended_at": 0.0}
    return Report(**values | changes)


def judge(**changes: Any) -> list[Validity]:
    """The flags of a run of a hundred requests that were all ok, changed as wanted."""
    values: dict[str, Any] = {"kept": [], "outcomes": [100, 0, 0, 0, 0, 0], "resent_at_most": 0}
    return build_validity(**{"windows": 1, "imbalance": None} | values | changes)


@pytest.mark.parametrize(
    ("busy_share", "max_lag_s", "flags"),
    [
        (0.0, 0.0, {}),
        (SATURATED_SHARE - 0.01, LAG_LIMIT_S - 0.01, {}),
        (SATURATED_SHARE, 0.0, {Flag.WORKER_SATURATED: SATURATED_SHARE}),
        (0.0, LAG_LIMIT_S, {Flag.LOOP_LAG: LAG_LIMIT_S}),
        (1.0, 3.0, {Flag.WORKER_SATURATED: 1.0, Flag.LOOP_LAG: 3.0}),
    ],
)
def test_a_report_is_flagged_from_the_limit_on(
    busy_share: float, max_lag_s: float, flags: dict[Flag, float]
) -> None:
    """With the figure that earned it."""
    assert judge_report(build_report(busy_share=busy_share, max_lag_s=max_lag_s)) == flags


def test_a_lease_that_was_given_back_unbegun_is_not_flagged() -> None:
    """Whatever its worker did meanwhile, it concerns no request."""
    assert judge_report(build_report(done=0, busy_share=1.0, max_lag_s=3.0)) == {}


def test_a_run_without_a_fault_has_no_flag() -> None:
    """Every request answered once, in one window, and the account balances."""
    assert judge() == []


@pytest.mark.parametrize(
    ("changes", "flag", "requests", "said"),
    [
        ({"outcomes": [90, 4, 1, 2, 3, 0]}, Flag.UNANSWERED, 6, "in no latency figure"),
        ({"resent_at_most": 7}, Flag.RESENT, 7, "each is counted once"),
        ({"windows": 3}, Flag.INTERRUPTED, 100, "in 3 windows"),
        ({"imbalance": "1 is not 2"}, Flag.UNBALANCED, 100, "1 is not 2"),
        ({"kept": [(Flag.WORKER_SATURATED, 50, 0.97)]}, Flag.WORKER_SATURATED, 50, "busy for 97% of"),
        ({"kept": [(Flag.LOOP_LAG, 30, 0.25)]}, Flag.LOOP_LAG, 30, "up to 250 ms late"),
        ({"kept": [(Flag.WORKER_LOST, 20, 0.0)]}, Flag.WORKER_LOST, 20, "lost workers"),
    ],
)  # fmt: skip
def test_what_may_mislead_says_so(changes: dict[str, Any], flag: Flag, requests: int, said: str) -> None:
    """Each flag tells what it means and how many requests it concerns."""
    (validity,) = judge(**changes)
    assert (validity.flag, validity.requests) == (flag, requests)
    assert said in validity.detail

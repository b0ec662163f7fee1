from typing import Any

import pytest
from tests.kit.outcomes import make_counts

from oku_core.messaging.checkpoint import LeaseFigures
from oku_core.summary.plan_check import OffPlanCause, PlanSummary
from oku_core.summary.validity import (
    FEWEST_STRAINED,
    Flag,
    Validity,
    WindowFill,
    build_validity,
    flag_growth,
    flag_off_plan,
)


def judge(**changes: Any) -> list[Validity]:
    """Build the flags of a run of a hundred requests that were all ok, apart from `changes`."""
    values: dict[str, Any] = {"kept": [], "outcomes": make_counts(100), "resent_at_most": 0}
    return build_validity(**{"periods": 1, "imbalance": None} | values | changes)


def test_a_lease_is_flagged_for_the_requests_that_were_affected() -> None:
    """Each of its checkpoints adds what is new; a flag has the figure behind it."""
    first = LeaseFigures(busy_share=0.95, saturated=4)
    second = LeaseFigures(busy_share=0.97, saturated=9, max_lag_s=0.3, lagged=2)
    assert flag_growth(LeaseFigures(), first, covered_before=0, covered=10) == [
        (Flag.WORKER_SATURATED, 4, 0.95)
    ]
    assert flag_growth(first, second, covered_before=10, covered=20) == [
        (Flag.WORKER_SATURATED, 5, 0.97),
        (Flag.LOOP_LAG, 2, 0.3),
    ]
    assert flag_growth(second, second, covered_before=20, covered=30) == []
    # All requests of a lease are flagged once a clock was set.
    unset, was_set = LeaseFigures(), LeaseFigures(clock_step_s=5.0)
    assert flag_growth(unset, was_set, covered_before=10, covered=30) == [(Flag.CLOCK_SET, 30, 5.0)]
    assert flag_growth(was_set, was_set, covered_before=30, covered=40) == [(Flag.CLOCK_SET, 10, 5.0)]
    # A lease without affected requests is not flagged.
    figures = LeaseFigures(busy_share=1.0, max_lag_s=3.0, clock_step_s=5.0)
    assert flag_growth(LeaseFigures(), figures, covered_before=0, covered=0) == []


def test_what_moves_no_figure_is_not_flagged() -> None:
    """One second of a long run says little about the whole run."""
    cases: list[Flag] = [Flag.WORKER_SATURATED, Flag.LOOP_LAG]
    for flag in cases:
        outcomes, least = make_counts(100_000), round(FEWEST_STRAINED * 100_000)
        assert judge(outcomes=outcomes, kept=[(flag, least - 1, 1.0)]) == []
        (validity,) = judge(outcomes=outcomes, kept=[(flag, least, 1.0)])
        assert (validity.requests, validity.share) == (least, 0.01)
    # A lost worker is flagged whatever its share. A lost worker is an event, not a figure.
    outcomes = make_counts(100_000)
    (validity,) = judge(outcomes=outcomes, kept=[(Flag.WORKER_LOST, 5, 0.0)])
    assert validity.requests == 5
    # A run without a fault has no flag.
    assert judge() == []


@pytest.mark.parametrize(
    ("changes", "flag", "requests", "said"),
    [
        ({"outcomes": [90, 4, 1, 2, 3, 0, 0, 0, 0]}, Flag.UNANSWERED, 6, "in no latency figure"),
        ({"resent_at_most": 7}, Flag.RESENT, 7, "each is counted once"),
        ({"periods": 3}, Flag.INTERRUPTED, 100, "in 3 periods"),
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


@pytest.mark.parametrize(
    ("watched_s", "underfilled_s", "workers", "is_flagged"),
    [
        (0.0, 0.0, 4, False),
        (1000.0, 30.0, 4, False),
        (1000.0, 30.1, 4, True),
        (10.0, 6.0, 4, False),
        (10.0, 6.1, 4, True),
    ],
)
def test_windows_that_were_not_full_are_flagged(
    watched_s: float, underfilled_s: float, workers: int, *, is_flagged: bool
) -> None:
    """More than 3 % of the seconds are, and more than the first one of each worker."""
    flags = judge(fill=WindowFill(watched_s, underfilled_s, workers))
    assert [validity.flag for validity in flags] == [Flag.UNDERFILLED] * is_flagged
    if is_flagged:
        share = f"{underfilled_s / watched_s:.1%}"
        assert f"less than 97% of the window was in flight in {share} of the seconds" in flags[0].detail
        assert (flags[0].requests, flags[0].share) == (100, 1.0)


def test_what_was_not_sent_is_not_unanswered() -> None:
    """It has an outcome of its own, and so has what is lost."""
    (flag,) = judge(outcomes=make_counts(90, timeout=2, not_sent=7, lost=1))
    assert (flag.flag, flag.requests) == (Flag.UNANSWERED, 2)
    # What is lost is not said to be sent twice. It may have been sent, and nobody sends it again.
    (flag,) = judge(outcomes=make_counts(90, lost=10), resent_at_most=12)
    assert flag.detail == (
        "at most this many were sent more than once, or are lost and may have been sent; each is counted once"
    )
    # A run that lacked workers or its clock says so. That concerns all of its requests.
    for missing, said in [(1, "1 worker was missing"), (3, "up to 3 workers were missing")]:
        (validity,) = judge(kept=[(Flag.WORKERS_MISSING, 0, float(missing))])
        assert (validity.requests, validity.share) == (100, 1.0)
        assert validity.detail.startswith(said)
    # A run whose workers did not know its clock says so. That concerns all of its requests.
    (validity,) = judge(kept=[(Flag.CLOCK_SKEW, 0, 0.0123)])
    assert (validity.requests, validity.share) == (100, 1.0)
    assert "only to within 12.3 ms" in validity.detail


def test_a_run_off_its_plan_says_in_which_share_of_its_seconds_and_why() -> None:
    """The requests are those that were due in these seconds and not sent in them."""
    plan = PlanSummary(
        seconds=120, off_seconds=15, off_share=0.125, missed=30,
        causes=[OffPlanCause.TARGET, OffPlanCause.BROKER],
    )  # fmt: skip
    validity = flag_off_plan(plan, 1000)
    assert (validity.flag, validity.requests, validity.share) == (Flag.OFF_PLAN, 30, 0.03)
    assert validity.detail == (
        "in 12.5% of the seconds (15 of 120) the requests sent were off the plan by more than 1%: the target "
        "was too slow for the number of requests that may be in flight (target); no worker had the requests "
        "in time (broker)"
    )
    assert flag_off_plan(plan, 0).share is None

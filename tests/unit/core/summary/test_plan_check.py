import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import build_no_counts
from oku_core.results.series import SeriesRow
from oku_core.schedule.due_counts import DueCounts
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage
from oku_core.schedule.wave import ActivePeriod
from oku_core.summary.plan_check import (
    Load,
    OffPlanCause,
    PlannedSeconds,
    check_plan,
    find_causes,
    list_planned,
)

LOAD = Load(Account(outcomes=make_counts(1000)), 10.0, 20, is_own_window=False)


def build_dues(rate: int, duration_s: int) -> DueCounts:
    """A schedule of one rate."""
    return DueCounts(Schedule([Stage("", Fraction(duration_s), Fraction(rate), Fraction(rate))]))


def build_rows(sent: dict[int, int], seconds: int = 1) -> list[SeriesRow]:
    """A series of seconds in which so many were sent."""
    return [
        SeriesRow(second=second, seconds=seconds, outcomes=build_no_counts(), sent=count)
        for second, count in sent.items()
    ]


def list_all(
    rows: list[SeriesRow], *periods: tuple[float, float, float], duration_s: int = 5, **given: float
) -> list[tuple[int, float, int]]:
    """The seconds that are judged of 10/s, each with its length, what is due in it, and what was sent."""
    timed = [(ActivePeriod(starts_at, offset_s), stop_s) for starts_at, offset_s, stop_s in periods]
    dues = build_dues(10, duration_s)
    return [(each.seconds, each.due, each.sent) for each in list_planned(rows, timed, dues, **given)]


@pytest.mark.parametrize(
    ("seconds", "is_off"),
    [
        (PlannedSeconds(1, 10, 9), False),
        (PlannedSeconds(1, 10, 8), True),
        (PlannedSeconds(1, 0, 1), False),
        (PlannedSeconds(1, 1000, 1010), False),
        (PlannedSeconds(1, 1000, 1011), True),
        (PlannedSeconds(1, 1000, 970, 5.0), False),
        (PlannedSeconds(1, 1000, 969, 5.0), True),
        (PlannedSeconds(4, 4000, 3960), False),
    ],
)
def test_a_second_is_off_beyond_a_request_and_a_hundredth(seconds: PlannedSeconds, *, is_off: bool) -> None:
    """A number that is itself random has four standard deviations in addition."""
    assert seconds.is_off() == is_off


def test_clocks_that_are_not_well_known_excuse_what_they_may_shift() -> None:
    """A bound of 10 ms is a hundredth of a second's requests."""
    assert not PlannedSeconds(1, 1000, 980).is_off(skew_s=0.01)
    assert PlannedSeconds(1, 1000, 979).is_off(skew_s=0.01)


def test_each_second_is_compared_with_the_schedule() -> None:
    """What is sent behind the end is in no second of the schedule."""
    rows = build_rows({100: 10, 101: 9, 102: 10, 103: 10, 104: 10, 105: 1})
    assert list_all(rows, (100.0, 0.0, math.inf)) == [(1, 10, sent) for sent in (10, 9, 10, 10, 10)]


def test_seconds_without_requests_are_seconds_all_the_same() -> None:
    """They have no row if nothing ended in them either."""
    rows = build_rows({100: 10, 103: 10})
    sent = [sent for _, _, sent in list_all(rows, (100.0, 0.0, math.inf))]
    assert sent == [10, 0, 0, 10, 0]


def test_a_gap_of_hours_is_judged_at_once() -> None:
    """Nobody needs its seconds one by one."""
    rows = build_rows({100: 10, 9000: 10})
    assert (8899, 88990, 0) in list_all(rows, (100.0, 0.0, math.inf), duration_s=10_000)


def test_seconds_that_are_cut_are_left_out() -> None:
    """A start within a second, a pause, and the end of a schedule cut it."""
    rows = build_rows({100: 5, 101: 10, 102: 10, 103: 2, 200: 8, 201: 10, 202: 5})
    periods = (100.5, 0.0, 2.7), (200.2, 2.7, math.inf)
    assert list_all(rows, *periods) == [(1, 10, 10), (1, 10, 10), (1, 10, 10)]


def test_time_that_comes_twice_is_left_out() -> None:
    """When a run goes on, its clock may be set back to what was in flight, and only that is due again."""
    rows = build_rows({100: 10, 101: 10, 102: 10, 200: 1, 201: 0, 202: 10, 203: 10})
    periods = (100.0, 0.0, 3.0), (200.0, 1.0, math.inf)
    assert [sent for _, _, sent in list_all(rows, *periods)] == [10, 10, 10, 10, 10]


def test_of_a_running_run_only_settled_seconds_are_judged() -> None:
    """Workers tell of the others in their next checkpoints."""
    rows = build_rows({100: 10, 101: 10, 102: 3})
    assert len(list_all(rows, (100.0, 0.0, math.inf), settled_to=102.0)) == 2
    assert list_all(rows, (100.0, 0.0, math.inf), settled_to=0.0) == []


def test_merged_seconds_are_judged_together() -> None:
    """Those that reach over a start or an end are left out."""
    rows = build_rows({98: 20, 102: 39, 106: 40, 110: 25}, seconds=4)
    judged = list_all(rows, (100.0, 0.0, math.inf), duration_s=12)
    assert judged == [(4, 40, 39), (4, 40, 40)]


def test_the_share_is_that_of_the_seconds() -> None:
    """What was missed is what was due in them and not sent; what was sent beside does not make up for it."""
    seconds = [PlannedSeconds(1, 100, 100), PlannedSeconds(2, 200, 150), PlannedSeconds(1, 100, 150)]
    plan = check_plan(seconds, LOAD)
    assert (plan.seconds, plan.off_seconds, plan.off_share, plan.missed) == (4, 3, 0.75, 50)


def test_a_run_as_planned_has_no_causes() -> None:
    """Requests that were not sent are too few to matter then, or there are none."""
    plan = check_plan([PlannedSeconds(1, 100, 99)], LOAD._replace(account=Account(not_sent=[0, 1, 0])))
    assert (plan.off_seconds, plan.missed, plan.causes) == (0, 0, [])
    assert check_plan([], LOAD).off_share == 0


def test_a_run_off_its_plan_says_why() -> None:
    """Nothing explains this one but its workers."""
    plan = check_plan([PlannedSeconds(1, 100, 50), PlannedSeconds(1, 100, 150)], LOAD)
    assert plan.causes == [OffPlanCause.WORKER]


TARGET, CAP, WORKER, BROKER = OffPlanCause


def build_load(latencies_ms: Mapping[int, int] | None = None, **changes: Any) -> Load:
    """A run of 100/s with 20 in flight, which the user has said; they hold 200 ms."""
    latency = Histogram()
    for latency_ms, count in (latencies_ms or {10: 1000}).items():
        for _ in range(count):
            latency.record(1000 * latency_ms)
    account = Account(outcomes=make_counts(latency.total), times={Time.LATENCY: latency})
    for name in ("outcomes", "not_sent"):
        setattr(account, name, changes.pop(name, getattr(account, name)))
    values: dict[str, Any] = {"peak_rps": 100.0, "window": 20, "is_own_window": True}
    return Load(account, **values | changes)


@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        ({"not_sent": [0, 9, 0]}, [WORKER]),
        ({"not_sent": [0, 0, 9]}, [BROKER]),
        ({"outcomes": make_counts(1000, lost=9)}, [WORKER]),
        ({"not_sent": [2, 3, 4]}, [BROKER, WORKER, TARGET]),
        ({"not_sent": [900, 1, 9]}, [TARGET]),
        ({}, [WORKER]),
    ],
)
def test_what_was_not_sent_says_why(changes: dict[str, Any], causes: list[OffPlanCause]) -> None:
    """The weightiest cause comes first; what stands for less than a hundredth is not told."""
    assert find_causes(build_load(**changes), 9) == causes


def test_a_window_that_does_not_hold_the_usual_latency_is_too_small() -> None:
    """By Little's law: 100/s with 300 ms are 30 in flight, and 20 are allowed."""
    assert find_causes(build_load({300: 1000}, not_sent=[500, 0, 0]), 500) == [CAP]


def test_a_target_that_is_slower_than_usual_is_to_blame() -> None:
    """What is in flight holds its usual latency."""
    assert find_causes(build_load({10: 900, 3000: 50}, not_sent=[50, 0, 0]), 50) == [TARGET]


@pytest.mark.parametrize("changes", [{"is_own_window": False}, {"window": 200}])
def test_a_window_as_large_as_that_of_others_is_not_too_small(changes: dict[str, Any]) -> None:
    """Who says nothing has what is sent in 2 s; a target that needs longer is slow."""
    load = build_load({9000: 1000}, not_sent=[500, 0, 0], **changes)
    assert find_causes(load, 500) == [TARGET]


def test_a_target_that_never_answers_is_to_blame() -> None:
    """Nobody knows how long it usually takes."""
    load = build_load({10: 0}, outcomes=make_counts(0, timeout=100), not_sent=[500, 0, 0])
    assert find_causes(load, 500) == [TARGET]


@pytest.mark.parametrize(
    ("latencies_ms", "cause"),
    [({10: 991, 100: 9}, WORKER), ({10: 990, 100: 10}, TARGET), ({150: 1000}, TARGET), ({300: 1000}, CAP)],
)
def test_what_was_sent_late_is_due_to_slow_requests_if_they_can_fill_the_window(
    latencies_ms: dict[int, int], cause: OffPlanCause
) -> None:
    """In a full window, half of the requests take half of the time that it holds, or longer."""
    assert find_causes(build_load(latencies_ms), 100) == [cause]


def test_what_is_sent_in_another_second_counts_beside_what_is_not_sent() -> None:
    """Each has its own cause."""
    assert find_causes(build_load(not_sent=[0, 0, 10]), 100) == [WORKER, BROKER]

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

LOAD = Load(Account(outcomes=make_counts(1000)), 10.0, 20)


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


def test_a_second_is_off_beyond_a_request_and_a_hundredth() -> None:
    """A number that is itself random has four standard deviations in addition."""
    cases: list[tuple[PlannedSeconds, bool]] = [
        (PlannedSeconds(1, 10, 9), False),
        (PlannedSeconds(1, 10, 8), True),
        (PlannedSeconds(1, 0, 1), False),
        (PlannedSeconds(1, 1000, 1010), False),
        (PlannedSeconds(1, 1000, 1011), True),
        (PlannedSeconds(1, 1000, 970, 5.0), False),
        (PlannedSeconds(1, 1000, 969, 5.0), True),
        (PlannedSeconds(4, 4000, 3960), False),
    ]
    for seconds, is_off in cases:
        assert seconds.is_off() == is_off
    # Clocks that are not well known excuse what they may shift.
    assert not PlannedSeconds(1, 1000, 980).is_off(skew_s=0.01)
    assert PlannedSeconds(1, 1000, 979).is_off(skew_s=0.01)


def test_each_second_is_compared_with_the_schedule() -> None:
    """What is sent behind the end is in no second of the schedule."""
    rows = build_rows({100: 10, 101: 9, 102: 10, 103: 10, 104: 10, 105: 1})
    assert list_all(rows, (100.0, 0.0, math.inf)) == [(1, 10, sent) for sent in (10, 9, 10, 10, 10)]
    # Seconds without requests are seconds all the same. They have no row if nothing ended in them either.
    rows = build_rows({100: 10, 103: 10})
    sent = [sent for _, _, sent in list_all(rows, (100.0, 0.0, math.inf))]
    assert sent == [10, 0, 0, 10, 0]
    # A gap of hours is judged at once. Nobody needs its seconds one by one.
    rows = build_rows({100: 10, 9000: 10})
    assert (8899, 88990, 0) in list_all(rows, (100.0, 0.0, math.inf), duration_s=10_000)
    # Only whole seconds that are settled are judged.
    rows = build_rows({100: 5, 101: 10, 102: 10, 103: 2, 200: 8, 201: 10, 202: 5})
    periods = (100.5, 0.0, 2.7), (200.2, 2.7, math.inf)
    assert list_all(rows, *periods) == [(1, 10, 10), (1, 10, 10), (1, 10, 10)]
    # Time that comes twice is left out.
    rows = build_rows({100: 10, 101: 10, 102: 10, 200: 1, 201: 0, 202: 10, 203: 10})
    periods = (100.0, 0.0, 3.0), (200.0, 1.0, math.inf)
    assert [sent for _, _, sent in list_all(rows, *periods)] == [10, 10, 10, 10, 10]
    # Of a running run only settled seconds are judged.
    rows = build_rows({100: 10, 101: 10, 102: 3})
    assert len(list_all(rows, (100.0, 0.0, math.inf), settled_to=102.0)) == 2
    assert list_all(rows, (100.0, 0.0, math.inf), settled_to=0.0) == []
    # Merged seconds are judged together. Those that reach over a start or an end are left out.
    rows = build_rows({98: 20, 102: 39, 106: 40, 110: 25}, seconds=4)
    judged = list_all(rows, (100.0, 0.0, math.inf), duration_s=12)
    assert judged == [(4, 40, 39), (4, 40, 40)]
    # The share off the plan is that of the seconds.
    seconds = [PlannedSeconds(1, 100, 100), PlannedSeconds(2, 200, 150), PlannedSeconds(1, 100, 150)]
    plan = check_plan(seconds, LOAD)
    assert (plan.seconds, plan.off_seconds, plan.off_share, plan.missed) == (4, 3, 0.75, 50)
    # A run as planned has no causes.
    plan = check_plan([PlannedSeconds(1, 100, 99)], LOAD._replace(account=Account(not_sent=[0, 1, 0])))
    assert (plan.off_seconds, plan.missed, plan.causes) == (0, 0, [])
    assert check_plan([], LOAD).off_share == 0
    # A run off its plan says why. Nothing explains this one but its workers.
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
    values: dict[str, Any] = {"peak_rps": 100.0, "window": 20}
    return Load(account, **values | changes)


@pytest.mark.parametrize(
    ("latencies_ms", "cause"),
    [({10: 991, 100: 9}, WORKER), ({10: 990, 100: 10}, TARGET), ({150: 1000}, TARGET), ({300: 1000}, CAP)],
)
def test_what_was_sent_late_is_due_to_slow_requests_if_they_can_fill_the_window(
    latencies_ms: dict[int, int], cause: OffPlanCause
) -> None:
    """In a full window, half of the requests take half of the time that it holds, or longer."""
    assert find_causes(build_load(latencies_ms), 100) == [cause]


def test_what_was_not_sent_says_why() -> None:
    """The weightiest cause comes first; what stands for less than a hundredth is not told."""
    cases: list[tuple[dict[str, Any], list[OffPlanCause]]] = [
        ({"not_sent": [0, 9, 0]}, [WORKER]),
        ({"not_sent": [0, 0, 9]}, [BROKER]),
        ({"outcomes": make_counts(1000, lost=9)}, [WORKER]),
        ({"not_sent": [2, 3, 4]}, [BROKER, WORKER, TARGET]),
        ({"not_sent": [900, 1, 9]}, [TARGET]),
        ({}, [WORKER]),
    ]
    for changes, causes in cases:
        assert find_causes(build_load(**changes), 9) == causes
    # A window that does not hold the usual latency is too small.
    assert find_causes(build_load({300: 1000}, not_sent=[500, 0, 0]), 500) == [CAP]
    # A target that is slower than usual is to blame. What is in flight holds its usual latency.
    assert find_causes(build_load({10: 900, 3000: 50}, not_sent=[50, 0, 0]), 50) == [TARGET]
    # A window as large as the default is not too small.
    load = build_load({9000: 1000}, not_sent=[500, 0, 0], window=200)
    assert find_causes(load, 500) == [TARGET]
    # A target that never answers is to blame. Nobody knows how long it usually takes.
    load = build_load({10: 0}, outcomes=make_counts(0, timeout=100), not_sent=[500, 0, 0])
    assert find_causes(load, 500) == [TARGET]
    # What is sent in another second counts beside what is not sent. Each has its own cause.
    assert find_causes(build_load(not_sent=[0, 0, 10]), 100) == [WORKER, BROKER]

import math
from collections.abc import Mapping
from typing import Any

import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.results.active_seconds import LEFT_OUT_S, SeriesSeconds, build_live
from oku_core.results.sample import Sample, build_sample
from oku_core.results.series import SeriesRow
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load_plan import LoadPlan, build_load_plan
from oku_core.spec.parser import Source, parse_spec
from oku_core.thresholds.stretches import SeenSecond

START = 1000
ALWAYS = [(ActivePeriod(START, 0.0), math.inf)]


def build_plan(**values: object) -> LoadPlan:
    """The plan of a spec."""
    return build_load_plan(parse_spec(Source("spec", values)))


def build_rows(sent: Mapping[int, int], **given: Any) -> list[SeriesRow]:
    """The series of a run from `START` on, in whose seconds so many were sent and as many ended."""
    return [
        SeriesRow(second=START + second, outcomes=make_counts(count), sent=count, **given)
        for second, count in sent.items()
    ]


def take(
    plan: LoadPlan, sent: Mapping[int, int], settled_s: float = math.inf, **given: Any
) -> list[SeenSecond]:
    """The seconds of a run that has so long been settled."""
    periods = given.pop("periods", ALWAYS)
    return SeriesSeconds(plan).list_new(build_rows(sent, **given), periods, START + settled_s)


def list_rates(seconds: list[SeenSecond]) -> list[tuple[int, int, float | None]]:
    """When each second ends, what was sent in it, and what was planned."""
    return [(int(each.at - START), each.sent, each.planned) for each in seconds]


def build_live_sample(at_s: float, **given: Any) -> Sample:
    """A sample of a second, of a run with requests left to be sent."""
    figures: dict[str, Any] = {
        "done": 10, "in_flight": 5, "requests_total": 100, "outcomes": make_counts()
    } | given  # fmt: skip
    return build_sample(
        at=START + at_s, seconds=1.0, accounted=0, leased=0, pending=0, resent_at_most=0,
        workers=1, requests_sent=1, lag_s=0.0, times={Time.LATENCY: HistogramSnapshot()}, **figures,
    )  # fmt: skip


def test_a_second_is_seen_once_when_all_is_known_of_it() -> None:
    """While a setup is called, or workers are waited for, there is no period; a pause is none either."""
    plan = build_plan(rate="10/s", duration="9s")
    assert take(plan, {}, 5, periods=[]) == []
    assert take(plan, {}, 5, periods=[(ActivePeriod(START + 7, 0.0), math.inf)]) == []
    paused = [(ActivePeriod(START, 0.0), 2.4), (ActivePeriod(START + 6.4, 2.4), math.inf)]
    seconds = take(plan, dict.fromkeys(range(9), 10), 10, periods=paused)
    assert [(each.at - START, each.clock_s) for each in seconds] == [(1, 1), (2, 2), (8, 4), (9, 5)]
    # A second is seen once all workers have told of it and of the next.
    plan, sent = build_plan(rate="10/s", duration="9s"), dict.fromkeys(range(9), 10)
    series = SeriesSeconds(plan)
    seen = [
        list_rates(series.list_new(build_rows(sent), ALWAYS, START + told_s))
        for told_s in (-math.inf, 1.9, 3.1, 3.2)
    ]
    assert seen == [[], [], [(1, 10, 10), (2, 10, 10)], []]
    assert series.since == START + 2


def test_each_second_of_a_rate_has_what_is_due_in_it() -> None:
    """From the first to the last second of the schedule, also without a request; none behind it."""
    plan = build_plan(rate="10/s", duration="4s")
    seconds = take(plan, {0: 10, 1: 9, 3: 10, 4: 1})
    assert list_rates(seconds) == [(1, 10, 10), (2, 9, 10), (3, 0, 10), (4, 10, 10)]
    assert [each.clock_s for each in seconds] == [1, 2, 3, 4]
    # Seconds in which nothing is to be sent are not seen. In a stage of 0/s the run waits.
    plan = build_plan(stages=["2s:10/s", "3s:0..0/s", "2s:10/s"])
    assert [each.at - START for each in take(plan, {})] == [1, 2, 6, 7]
    # Seconds have their phases. One in which a stage ends has several.
    seconds = take(build_plan(stages=["a=1500ms:10/s", "b=1500ms:10/s"]), {})
    assert [each.phases for each in seconds] == [["a"], ["a", "b"], ["b"]]


def test_requests_that_are_a_little_late_are_carried_to_their_own_second() -> None:
    """As many as are due in a quarter of a second, and no more than are sent in the next."""
    seconds = take(build_plan(rate="20/s", duration="6s"), {0: 19, 1: 20, 2: 21, 3: 13, 4: 27, 5: 19, 6: 1})
    assert [(each.carried_in, each.carried_out) for each in seconds] == [
        (0, 1), (1, 1), (1, 0), (0, 5), (5, 0), (0, 1)
    ]  # fmt: skip
    # What was given up is carried nowhere. It is never sent, so it is not late.
    rows = [
        SeriesRow(second=START + second, outcomes=make_counts(18, not_sent=2), sent=18) for second in range(3)
    ]
    seconds = SeriesSeconds(build_plan(rate="20/s", duration="3s")).list_new(rows, ALWAYS)
    assert [each.carried_out for each in seconds] == [0, 0, 0]
    # Nothing is carried over a pause. What was due before it is due again behind it.
    periods = [(ActivePeriod(START, 0.0), 2.0), (ActivePeriod(START + 5, 2.0), 4.0)]
    seconds = take(build_plan(rate="20/s", duration="6s"), {0: 20, 1: 10, 5: 20, 6: 20}, periods=periods)
    assert [each.carried_in for each in seconds] == [0, 0, 0, 0]


def test_seconds_of_a_run_without_a_rate_have_what_ended_in_them() -> None:
    """Its first answers take a moment, so two seconds are left out after each start."""
    periods = [(ActivePeriod(START + 0.3, 0.0), 4.7), (ActivePeriod(START + 8.5, 4.7), 8.0)]
    seconds = take(build_plan(duration="8s"), dict.fromkeys(range(20), 7), periods=periods)
    assert list_rates(seconds) == [(4, 7, None), (5, 7, None)]
    # The end of a run is not seen although answers are outstanding.
    seconds = take(build_plan(duration="5s"), dict.fromkeys(range(20), 7), 20)
    assert [each.at - START for each in seconds] == [3, 4, 5]
    # Seconds that were merged are not seen. They have no place in a row of single ones.
    assert take(build_plan(rate="10/s", duration="9s"), {0: 90}, seconds=9) == []


@pytest.mark.parametrize(
    ("at_s", "given", "is_seen"),
    [
        (LEFT_OUT_S + 1, {}, True),
        (LEFT_OUT_S + 0.9, {}, False),
        (10.01, {}, True),
        (10.3, {}, False),
        (7.0, {"done": 95}, False),
        (7.0, {"done": 94}, True),
    ],
)
def test_a_sample_is_seen_if_all_of_it_is_of_a_run_that_has_more_to_send(
    at_s: float, given: dict[str, Any], *, is_seen: bool
) -> None:
    """It has some of the second before; at the end of a run only the last answers are outstanding."""
    seen = build_live(build_live_sample(at_s, **given), ALWAYS[0][0], build_plan(duration="10s"))
    assert (seen is not None) == is_seen


def test_a_sample_has_the_phases_of_all_of_it() -> None:
    """Some of what it has is of the second before."""
    plan = build_plan(stages=["a=5s:10/s", "gap=5s:0..0/s", "b=5s:10/s"])
    seen = [build_live(build_live_sample(at_s), ALWAYS[0][0], plan) for at_s in (5.0, 6.0, 9.0, 12.0, 13.0)]
    assert [each and each.phases for each in seen] == [["a"], ["a", "gap"], None, ["gap", "b"], ["b"]]

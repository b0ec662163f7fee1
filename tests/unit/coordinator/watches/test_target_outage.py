from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.ticks import build_tick
from tests.kit.outcomes import make_counts

from oku_coordinator.watches.target_watch import (
    BEYOND_TIMEOUT_S,
    GONE_AFTER_S,
    NEVER_OK_STOP_S,
    Change,
    TargetOutage,
    find_stop_after_s,
)
from oku_core.spec.spec import Engine, Spec

OK = {"outcomes": make_counts(50), "p99_ms": 20.0}
REFUSED = {"outcomes": make_counts(connect_error=100)}
NOTHING: dict[str, Any] = {}
HANGING = {"in_flight": 100}
SLOW = {"outcomes": make_counts(5), "in_flight": 5, "p99_ms": 12_000.0}
LEAST = int(GONE_AFTER_S)


class Target:
    """What is known of the target of a run of a million requests, second by second."""

    def __init__(self, **spec: Any) -> None:
        self.outage = TargetOutage()
        self.spec = Spec(**spec)
        self.second = 0
        self.so_far = make_counts()
        self.changes: list[tuple[int, Change]] = []
        self.ended_at: int | None = None

    def pass_seconds(self, seconds: int, sample: dict[str, Any], **tick: Any) -> None:
        """Let so many seconds be alike."""
        for _ in range(seconds):
            self.second += 1
            outcomes = sample.get("outcomes", make_counts())
            self.so_far = [sum(pair) for pair in zip(self.so_far, outcomes, strict=True)]
            values = {"outcomes_so_far": self.so_far} | sample
            if change := self.outage.record(build_tick(float(self.second), values, **tick)):
                self.changes.append((self.second, change))
            if self.ended_at is None and self.outage.is_down_for(self.spec) is not None:
                self.ended_at = self.second


def test_a_target_is_gone_when_nothing_was_ok_for_ten_seconds_after_something_was() -> None:
    """It is said once, and that it is back when something is ok again, with the time that took."""
    target = Target()
    target.pass_seconds(5, OK)
    target.pass_seconds(LEAST - 1, REFUSED)
    assert target.changes == []
    target.pass_seconds(13, REFUSED)
    assert target.changes == [(15, Change.GONE)]
    assert target.outage.describe_failures() == "most ended as connect error"
    target.pass_seconds(3, OK)
    assert target.changes == [(15, Change.GONE), (28, Change.BACK)]
    assert target.outage.away_s == 23.0


def test_a_target_that_hangs_is_gone_before_its_requests_time_out() -> None:
    """Requests are in flight all the time, and answers used to come at once."""
    target = Target()
    target.pass_seconds(5, OK)
    target.pass_seconds(LEAST, HANGING)
    assert target.changes == [(15, Change.GONE)]
    assert target.outage.describe_failures() == "none of those in flight has ended"


def test_slow_answers_are_not_an_outage() -> None:
    """A target that takes 12 s for each request is waited for twice as long, before the first, too."""
    target = Target()
    target.pass_seconds(12, HANGING)
    for _ in range(5):
        target.pass_seconds(1, SLOW)
        target.pass_seconds(11, HANGING)
    assert target.changes == []
    target.pass_seconds(13, HANGING)
    assert [change for _, change in target.changes] == [Change.GONE]


@pytest.mark.parametrize("sample", [NOTHING, {"outcomes": make_counts(not_sent=5)}])
def test_a_run_that_asks_for_nothing_learns_nothing(sample: dict[str, Any]) -> None:
    """No request was due, or none could be sent."""
    target = Target(stop_when_down_s=30.0)
    target.pass_seconds(5, OK)
    target.pass_seconds(100, sample)
    assert (target.changes, target.ended_at) == ([], None)


def test_one_failure_of_a_run_with_a_low_rate_is_not_an_outage() -> None:
    """A request a minute: after the second failure in a row, the target is gone."""
    target = Target()
    target.pass_seconds(1, OK)
    for _ in range(2):
        target.pass_seconds(59, NOTHING)
        target.pass_seconds(1, {"outcomes": make_counts(timeout=1)})
    assert target.changes == [(121, Change.GONE)]


def test_the_last_requests_of_a_run_may_be_slow() -> None:
    """All that are left are in flight, or the time of the run is over."""
    target = Target()
    target.pass_seconds(5, OK)
    target.pass_seconds(60, HANGING | {"requests_total": 1_000, "done": 950})
    target.pass_seconds(60, HANGING, clock_s=300.0, length_s=300.0)
    assert target.changes == []


def test_what_was_ok_before_a_coordinator_began_counts() -> None:
    """The ledger knows it; failures since then say that the target is gone, but silence does not yet."""
    target = Target()
    target.so_far = make_counts(1_000)
    target.pass_seconds(30, HANGING)
    assert target.changes == []
    target.pass_seconds(1, REFUSED)
    assert target.changes == [(31, Change.GONE)]


def test_progress_that_was_lost_does_not_make_a_target_silent() -> None:
    """What checkpoints say was ok counts, too."""
    target = Target()
    target.pass_seconds(5, OK)
    for _ in range(30):
        target.so_far[0] += 1
        target.pass_seconds(1, HANGING)
    assert target.changes == []


def test_a_run_of_which_nothing_was_ever_ok_ends_after_half_a_minute() -> None:
    """Nobody has to ask for that."""
    target = Target()
    target.pass_seconds(100, REFUSED)
    assert (target.changes, target.ended_at) == ([], int(NEVER_OK_STOP_S))
    assert target.outage.is_worth_reporting(target.spec)


def test_a_run_does_not_end_before_its_timeouts_were_seen() -> None:
    """Requests that may take a minute get it, and those after them, if there was only one."""
    target = Target(timeout_s=60.0)
    target.pass_seconds(60, HANGING)
    target.pass_seconds(4, HANGING | {"outcomes": make_counts(timeout=100)})
    assert target.ended_at is None
    target.pass_seconds(1, HANGING)
    assert target.ended_at == 60 + BEYOND_TIMEOUT_S
    single = Target(timeout_s=60.0)
    for _ in range(2):
        single.pass_seconds(60, {"in_flight": 1})
        single.pass_seconds(1, {"in_flight": 1, "outcomes": make_counts(timeout=1)})
    assert single.ended_at == 122


def test_iterations_that_are_longer_than_a_request_are_waited_for() -> None:
    """A few fail at once, and most are sessions of a minute; it is an outage once as many have failed."""
    target = Target(engine=Engine.PYTHON)
    target.pass_seconds(1, {"outcomes": make_counts(exception=2), "in_flight": 100})
    target.pass_seconds(60, {"in_flight": 100})
    assert (target.ended_at, target.outage.is_worth_reporting(target.spec)) == (None, False)
    target.pass_seconds(1, {"outcomes": make_counts(exception=98), "in_flight": 100})
    assert target.ended_at == 62


def test_iterations_that_all_fail_end_a_run_as_requests_do() -> None:
    """Nothing listens, say; and a run that says after which time it ends is taken at its word."""
    target = Target(engine=Engine.LOCUST)
    target.pass_seconds(int(NEVER_OK_STOP_S), {"outcomes": make_counts(failed_check=50), "in_flight": 100})
    assert target.ended_at == NEVER_OK_STOP_S
    target = Target(engine=Engine.PYTHON, stop_when_down_s=5.0)
    target.pass_seconds(5, {"outcomes": make_counts(exception=2), "in_flight": 100})
    assert target.ended_at == 5


def test_a_run_of_which_something_was_ok_goes_on_unless_it_says_otherwise() -> None:
    """Its target may come back."""
    target = Target()
    target.pass_seconds(1, OK)
    target.pass_seconds(3_600, REFUSED)
    assert target.ended_at is None
    target = Target(stop_when_down_s=20.0)
    target.pass_seconds(1, OK)
    target.pass_seconds(30, REFUSED)
    assert target.ended_at == 21


def test_a_run_that_says_never_goes_on() -> None:
    """Even if nothing was ever ok."""
    target = Target(stop_when_down_s=0.0)
    target.pass_seconds(3_600, REFUSED)
    assert target.ended_at is None
    assert find_stop_after_s(Spec(stop_when_down_s=0.0), was_ok=False) is None


@given(st.lists(st.sampled_from([OK, REFUSED, HANGING, NOTHING]), max_size=120))
def test_gone_and_back_alternate(seconds: Iterable[dict[str, Any]]) -> None:
    """A target is gone first, and never within ten seconds of an ok."""
    target, ok_at = Target(), 0
    for sample in seconds:
        before = len(target.changes)
        target.pass_seconds(1, sample)
        ok_at = target.second if sample is OK else ok_at
        if target.changes[before:]:
            assert target.changes[-1][1] is (Change.GONE, Change.BACK)[before % 2]
            assert target.outage.is_gone is (before % 2 == 0)
        if target.outage.is_gone:
            assert target.second - ok_at >= LEAST

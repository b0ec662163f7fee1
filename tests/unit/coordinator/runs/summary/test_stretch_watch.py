from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.kit.coordinators.transactions import change
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import StretchBasis
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.runs.summary.stretch_watch import StretchView, StretchWatch
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import build_sample
from oku_core.results.series import SeriesRow
from oku_core.spec.load_plan import build_load_plan
from oku_core.spec.parser import Source, parse_spec
from oku_core.thresholds.stretches import StretchValue

START = 1000.0
OPEN_PERIOD = PeriodRecord(START, 0.0)


class Watched:
    """A run, its watch, and what is kept of its thresholds."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.watch = StretchWatch(record.spec)
        self.kept: dict[int, ThresholdRecord] = {}

    def view(self, at_s: float, rows: Mapping[int, int] | None = None, **given: Any) -> None:
        """StretchView at it so long after its start.

        Args:
            at_s: when; the series is complete up to then unless it is said otherwise.
            rows: how many were sent in each second since the start, and ended with what `ended` gives.
            given: the rest of what is known.
        """
        sample = build_sample(
            at=START + at_s, seconds=1.0, requests_total=1000, done=given.get("done", 10), accounted=0,
            leased=0, pending=0, resent_at_most=0, workers=1, in_flight=5, requests_sent=1, lag_s=0.0,
            times={Time.LATENCY: HistogramSnapshot()}, outcomes=given.get("outcomes", make_counts()),
        )  # fmt: skip
        series = [
            SeriesRow(second=int(START) + second, outcomes=given.get("ended", make_counts(sent)), sent=sent)
            for second, sent in sorted((rows or {}).items())
            if START + second >= self.watch.since
        ]
        periods = given.get("periods", [OPEN_PERIOD])
        basis = StretchBasis(series, periods, [], given.get("pending", 100))
        settled_to = START + given.get("told_s", at_s)
        record = given.get("record", self.record)
        self.kept |= self.watch.update(StretchView(record, sample, basis, settled_to), self.kept)

    @property
    def worst(self) -> list[float | None]:
        """The worst value of each threshold."""
        numbers = range(len(self.record.spec.thresholds))
        return [self.kept.get(number, ThresholdRecord()).worst for number in numbers]


@pytest.fixture
def watch(ledger: Ledger) -> Callable[..., Watched]:
    """Begins a run of a spec, and watches it."""

    def watch(**values: object) -> Watched:
        change(ledger, create_run, "r1", parse_spec(Source("spec", values)), 0.0)
        return Watched(change(ledger, change_state, "r1", RunState.RUNNING, 1.0))

    return watch


def test_a_run_that_keeps_its_plan_has_all_of_it(watch: Callable[..., Watched]) -> None:
    """From its first second to its last, however workers tell of them, and with any length of a stretch."""
    texts = [f"rate >= 0.99 of plan over {over}" for over in ("1s", "3s", "10s")]
    watched = watch(rate="10/s", duration="14s", thresholds=texts)
    for at in range(-3, 20):
        # Those of the last seconds have not told of them.
        rows = {second: 10 for second in range(14) if second < at}
        watched.view(at, rows, told_s=at - 2.4)
    assert watched.worst == [1.0, 1.0, 1.0]
    assert all(record.loss is None for record in watched.kept.values())


def test_a_random_plan_is_compared_with_itself(watch: Callable[..., Watched]) -> None:
    """A run that sends what was drawn for each second keeps its plan, one that sends evenly does not."""
    threshold = "rate >= 1 of plan over 1s"
    spec = parse_spec(Source("spec", {"rate": "100/s", "duration": "9s", "arrivals": "poisson", "seed": 5}))
    watched = watch(rate="100/s", duration="9s", arrivals="poisson", seed=5, thresholds=[threshold])
    plan = build_load_plan(spec)
    watched.view(12, {second: plan.count(second, second + 1) or 0 for second in range(9)})
    assert watched.worst == [1.0]

    even = Watched(watched.record)
    even.view(12, dict.fromkeys(range(9), 100))
    assert even.kept[0].loss is not None


def test_a_run_that_misses_its_plan_loses_where_it_did(watch: Callable[..., Watched]) -> None:
    """In the first stretch that has too little, by its last second and phase.

    A quarter of a second is excused once: so much may be late.
    """
    watched = watch(
        stages=["ramp=3s:0..60/s", "steady=9s:60/s"],
        thresholds=["rate >= 0.99 of plan over 2s", "rate >= 9/s over 3s"],
    )
    watched.view(12, {0: 10, 1: 30, 2: 50} | dict.fromkeys(range(3, 7), 60) | dict.fromkeys(range(7, 12), 45))
    loss = watched.kept[0].loss
    assert loss == StretchValue(0.875, holds=False, phase="steady", clock_s=9.0)
    assert watched.worst == [0.75, 30.0]


def test_before_its_clock_goes_on_a_run_is_not_looked_at(watch: Callable[..., Watched]) -> None:
    """It is running while its setup is called or workers are missing, and sends nothing."""
    watched = watch(
        rate="10/s", duration="14s", thresholds=["rate >= 5/s over 2s", "ok >= 1 over 1s", "p50 < 1s over 1s"]
    )
    for at in range(20):
        watched.view(at, periods=[], outcomes=make_counts(timeout=1))
    assert watched.kept == {}
    watched.view(21, periods=[PeriodRecord(START + 22, 0.0)], outcomes=make_counts(timeout=1))
    assert watched.kept == {}


def test_a_run_without_a_rate_is_looked_at_while_requests_are_left(watch: Callable[..., Watched]) -> None:
    """Its last answers may take long; the time that it lasts is over before."""
    watched = watch(duration="9s", requests=1000, thresholds=["rate >= 5/s over 2s"])
    watched.view(6, dict.fromkeys(range(6), 7))
    watched.view(8, {}, pending=0, done=995)
    assert watched.worst == [7.0]
    assert watched.watch.since == START + 6

    timed = Watched(watched.record)
    timed.view(30, dict.fromkeys(range(9), 7) | {12: 1})
    assert timed.worst == [7.0]
    assert timed.kept[0].longest_s == 2.0


def test_a_run_without_a_clock_is_looked_at_from_its_first_request_on(watch: Callable[..., Watched]) -> None:
    """And not while it is paused: nothing tells when it ended to send."""
    watched = watch(requests=1000, thresholds=["rate >= 5/s over 2s"])
    watched.view(6, dict.fromkeys(range(6), 7), periods=[])
    assert watched.kept == {}
    begun = replace(watched.record, active_since=START + 0.5)
    watched.view(5, dict.fromkeys(range(9), 7), periods=[], record=begun)
    assert watched.worst == [7.0]
    pausing = replace(begun, state=RunState.PAUSING)
    watched.view(9, {}, periods=[], record=pausing)
    assert watched.worst == [7.0]


def test_times_are_looked_at_live(watch: Callable[..., Watched]) -> None:
    """As soon as what was seen is of this phase alone; what workers tell later is not waited for."""
    watched = watch(stages=["a=5s:10/s", "b=9s:10/s"], thresholds=["p50 < 1s over 1s during b"])
    for at in range(3, 9):
        watched.view(at, told_s=0, outcomes=make_counts(timeout=1))
    loss = watched.kept[0].loss
    assert loss is not None
    assert (loss.phase, loss.clock_s) == ("b", 8.0)

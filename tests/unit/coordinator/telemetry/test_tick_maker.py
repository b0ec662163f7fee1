from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.kit.coordinators.iterations import build_inner
from tests.kit.coordinators.parts import build_closed_part, build_histogram
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.rules.snapshots import Standing
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.telemetry.tick_maker import MOST_NAMES, TargetTicks, TickMaker
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.interval import Lengths
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.target import Target
from oku_core.summary.tick import TargetTick


def build_progress(worker: str = "w1", ok: int = 0, **changes: Any) -> Progress:
    """A second of a worker in which so many requests were ok."""
    done = {name: changes.pop(name) for name in RunProgress.__struct_fields__ if name in changes}
    values: dict[str, Any] = {"incarnation": "b1", "at": 0.0}
    runs = {"r1": RunProgress(**{"outcomes": make_counts(ok)} | done)}
    return Progress(worker=worker, **values | {"runs": runs} | changes)


def build_standing(leases: Mapping[str, list[int]] = {}, leased: int = 100) -> Standing:
    """A run that has been active since 10 s, with 300 requests accounted, some of them of open leases."""
    record = RunRecord(
        run="r1", name="", requests=1000, engine=EngineChoice(Engine.AIOHTTP), target="",
        spec=Spec(requests=1000), state=RunState.RUNNING, reason="", created_at=0.0,
        started_at=10.0, ended_at=None, active_s=0.0, active_since=10.0, periods=1, last_checkpoint_at=None,
        resent_at_most=7, served=None, outcomes=make_counts(290, unexpected_status=10), is_broken=False,
        is_published=False, number=1, watched_s=0.0, underfilled_s=0.0,
    )  # fmt: skip
    return Standing(
        record=record, lengths=Lengths(pending=1000 - 300 - leased, leased=leased, accounted=300),
        leases=leases,
    )  # fmt: skip


@pytest.fixture
def ticks() -> TickMaker:
    """Nothing was heard yet."""
    return TickMaker("r1")


def test_a_tick_without_progress_shows_the_ledger(ticks: TickMaker) -> None:
    """No worker has sent progress in this second."""
    tick = ticks.build_tick(build_standing(), workers=2, now=15.0)
    sample = tick.sample
    assert (tick.run, tick.state, sample.at, sample.workers) == ("r1", RunState.RUNNING, 15.0, 2)
    assert (sample.requests_total, sample.accounted, sample.leased, sample.pending) == (1000, 300, 100, 600)
    assert (sample.resent_at_most, sample.active_s, sample.rate_rps, sample.done) == (7, 5.0, 0.0, 300)
    assert sample.outcomes_so_far == make_counts(290, unexpected_status=10)
    assert (sample.histogram(Time.LATENCY), sample.p50_ms, sample.p99_ms) == (HistogramSnapshot(), None, None)


def test_a_tick_of_an_open_run_has_three_distributions(ticks: TickMaker) -> None:
    """They are merged over all workers, each by itself, and the next tick begins with none."""
    ticks.add(
        build_progress(
            "w1", 1, times={Time.RESPONSE_TIME: build_histogram([5000]), Time.LATENESS: build_histogram([40])}
        )
    )
    ticks.add(
        build_progress(
            "w2", 1, times={Time.RESPONSE_TIME: build_histogram([7000]), Time.LATENESS: build_histogram([60])}
        )
    )
    sample = ticks.build_tick(build_standing(), workers=2, now=15.0).sample
    assert (sample.histogram(Time.RESPONSE_TIME), sample.histogram(Time.LATENESS)) == (
        build_histogram([5000, 7000]),
        build_histogram([40, 60]),
    )
    assert (sample.response_time_max_ms, sample.lateness_max_ms) == (7.0, 0.06)
    sample = ticks.build_tick(build_standing(), workers=2, now=16.0).sample
    assert (sample.requests_sent, sample.response_time_max_ms, sample.lateness_p50_ms) == (0, None, None)


def test_a_tick_sums_what_all_workers_say(ticks: TickMaker) -> None:
    """Counts, bytes and histograms add up; of the lags the largest counts."""
    first = build_histogram([1000, 3000])
    second = build_histogram([2000])
    ticks.add(
        build_progress(
            "w1", 2, bytes_received=20, in_flight=5, lag_s=0.2, times={Time.LATENCY: first}, sent=3
        )
    )
    ticks.add(
        build_progress(
            "w2", 1, bytes_received=10, in_flight=7, lag_s=0.1, times={Time.LATENCY: second}, sent=1
        )
    )
    sample = ticks.build_tick(build_standing(), workers=2, now=15.0).sample
    assert (sample.rate_rps, sample.outcomes) == (3.0, make_counts(3))
    assert (sample.bytes_received, sample.in_flight, sample.lag_s) == (30, 12, 0.2)
    assert sample.requests_sent == 4
    assert sample.histogram(Time.LATENCY) == build_histogram([1000, 2000, 3000])
    assert sample.p50_ms == pytest.approx(2.0, rel=0.001)
    assert sample.p99_ms == pytest.approx(3.0, rel=0.001)


def test_a_tick_is_as_long_as_the_time_since_the_last(ticks: TickMaker) -> None:
    """The first one counts as a second, and so does one that was briefly delayed."""
    lengths = []
    for now in (15.0, 16.0, 17.4, 17.9):
        ticks.add(build_progress(ok=6))
        sample = ticks.build_tick(build_standing(), workers=1, now=now).sample
        lengths.append(sample.seconds)
        assert sample.rate_rps == 6.0
    assert lengths == [1.0, 1.0, 1.0, pytest.approx(0.5)]


def test_after_a_standstill_a_tick_is_as_long_as_workers_tell(ticks: TickMaker) -> None:
    """A coordinator that was stopped hears what they did meanwhile, each of its own time."""
    ticks.build_tick(build_standing(), workers=2, now=15.0)
    for worker in ("w1", "w2"):
        for _ in range(4):
            ticks.add(build_progress(worker, ok=3))
    ticks.add(build_progress("w2", ok=4, seconds=2.0))
    sample = ticks.build_tick(build_standing(), workers=2, now=27.0).sample
    assert (sample.seconds, sum(sample.outcomes)) == (6.0, 28)
    assert sample.rate_rps == pytest.approx(28 / 6)


def test_a_machine_that_slept_leaves_a_gap(ticks: TickMaker) -> None:
    """The hour in which nobody did anything belongs to no second."""
    ticks.build_tick(build_standing(), workers=1, now=15.0)
    ticks.add(build_progress(ok=6))
    sample = ticks.build_tick(build_standing(), workers=1, now=3615.0).sample
    assert (sample.seconds, sample.rate_rps) == (1.0, 6.0)


def test_a_tick_is_no_longer_than_the_time_since_the_last(ticks: TickMaker) -> None:
    """Each of very many workers reports several seconds at a time, and a clock may be set back."""
    ticks.build_tick(build_standing(), workers=1, now=15.0)
    ticks.add(build_progress(ok=60, seconds=10.0))
    assert ticks.build_tick(build_standing(), workers=1, now=16.0).sample.seconds == 1.0
    assert 0 < ticks.build_tick(build_standing(), workers=1, now=3.0).sample.seconds < 0.01


def test_each_event_enters_one_tick(ticks: TickMaker) -> None:
    """The next tick starts from zero, except for the requests still in flight."""
    ticks.add(
        build_progress(
            ok=4, bytes_received=20, in_flight=5, lag_s=0.2, times={Time.LATENCY: build_histogram([1000])}
        )
    )
    ticks.build_tick(build_standing(), workers=1, now=15.0)
    sample = ticks.build_tick(build_standing(), workers=1, now=16.0).sample
    assert (sample.rate_rps, sum(sample.outcomes), sample.bytes_received, sample.lag_s) == (0.0, 0, 0, 0.0)
    assert sample.histogram(Time.LATENCY) == HistogramSnapshot()
    assert sample.in_flight == 5


def see(ok: int = 0, **others: int) -> LeaseProgress:
    """What progress says of a lease."""
    outcomes = make_counts(ok, **others)
    return LeaseProgress(taken=sum(outcomes), end=100, outcomes=outcomes)


NOTHING = build_no_counts()


def test_what_is_under_way_counts_until_it_is_accounted(ticks: TickMaker) -> None:
    """A lease that is not open any more is in the ledger by now, or was taken back."""
    ticks.add(build_progress("w1", leases={"l1": see(30, timeout=1), "l2": see(5)}))
    ticks.add(build_progress("w2", leases={"l3": see(unexpected_status=2)}))
    sample = ticks.build_tick(build_standing({"l1": NOTHING, "l3": NOTHING}), workers=2, now=15.0).sample
    assert sample.done == 333
    assert sample.outcomes_so_far == make_counts(320, unexpected_status=12, timeout=1)
    sample = ticks.build_tick(build_standing({"l3": NOTHING}), workers=2, now=16.0).sample
    assert sample.outcomes_so_far == make_counts(290, unexpected_status=12)
    assert len(sample.outcomes_so_far) == len(OUTCOMES)


def test_what_is_under_way_follows_progress_and_checkpoints(ticks: TickMaker) -> None:
    """Whichever of them is newer than the last tick."""
    ticks.add(build_progress("w1", leases={"l1": see(30)}))
    assert ticks.build_tick(build_standing({"l1": NOTHING}), workers=1, now=15.0).sample.done == 330
    ticks.add(build_progress("w1", leases={"l1": see(50)}))
    assert ticks.build_tick(build_standing({"l1": NOTHING}), workers=1, now=16.0).sample.done == 350
    standing = build_standing({"l1": make_counts(45)})
    assert ticks.build_tick(standing, workers=1, now=17.0).sample.done == 305


def test_what_a_checkpoint_has_accounted_counts_once(ticks: TickMaker) -> None:
    """Progress tells of a lease from its start; it may also be older than the checkpoint."""
    ticks.add(build_progress("w1", leases={"l1": see(30, timeout=1), "l2": see(5)}))
    committed = {"l1": make_counts(25), "l2": make_counts(9, unexpected_status=1)}
    sample = ticks.build_tick(build_standing(committed), workers=1, now=15.0).sample
    assert sample.done == 306
    assert sample.outcomes_so_far == make_counts(295, unexpected_status=10, timeout=1)


def test_no_more_has_ended_than_is_leased(ticks: TickMaker) -> None:
    """A worker that reports more is not believed."""
    ticks.add(build_progress(leases={"l1": see(500)}))
    standing = build_standing({"l1": NOTHING}, leased=100)
    assert ticks.build_tick(standing, workers=1, now=15.0).sample.done == 400


def test_a_dead_worker_has_nothing_in_flight(ticks: TickMaker) -> None:
    """Forgetting an unknown worker does no harm."""
    ticks.add(build_progress("w1", in_flight=5))
    ticks.add(build_progress("w2", in_flight=7))
    ticks.forget_worker("w1")
    ticks.forget_worker("w9")
    assert ticks.build_tick(build_standing(), workers=1, now=15.0).sample.in_flight == 7


def test_a_tick_tells_what_the_clock_of_a_run_says(ticks: TickMaker) -> None:
    """It stops at the end of the run's time; a run without a time has no clock."""
    standing = build_standing()
    plain = ticks.build_tick(standing, workers=2, now=15.0)
    assert (plain.clock_s, plain.length_s) == (None, None)
    timed = replace(standing.record, spec=Spec(duration_s=20.0))
    waiting = ticks.build_tick(replace(standing, record=timed), workers=2, now=15.0)
    assert (waiting.clock_s, waiting.length_s) == (0.0, 20.0)
    standing = replace(standing, record=timed, period=PeriodRecord(starts_at=10.0, offset_s=3.0))
    assert ticks.build_tick(standing, workers=2, now=15.0).clock_s == 8.0
    assert ticks.build_tick(standing, workers=2, now=55.0).clock_s == 20.0


def plan(**keys: object) -> Standing:
    """The same run with a spec that says this, of whose clock 3 s had passed at 10 s."""
    standing = build_standing()
    record = replace(standing.record, spec=parse_spec(Source(None, keys)))
    return replace(
        standing, record=record, period=PeriodRecord(starts_at=10.0, offset_s=3.0), not_sent=[4, 5, 6]
    )


def test_a_tick_of_an_open_run_says_what_was_not_sent_and_how_long_its_phase_lasts(ticks: TickMaker) -> None:
    """Nothing is left behind the end."""
    standing = plan(stages=["5s:0..10/s", "soak=20s:10..50/s"])
    tick = ticks.build_tick(standing, workers=2, now=15.0)
    assert (tick.sample.phase, tick.phase_left_s) == ("soak", 17.0)
    assert (tick.planned_in_flight, tick.not_sent) == (None, [4, 5, 6])
    assert ticks.build_tick(standing, workers=2, now=99.0).phase_left_s == 0.0


def test_a_tick_of_a_ramp_of_concurrency_has_what_may_be_in_flight(ticks: TickMaker) -> None:
    """It has no rate, and its requests no due times."""
    tick = ticks.build_tick(plan(stages=["10s:0..200", "5s:200"]), workers=2, now=15.0)
    assert (tick.sample.phase, tick.phase_left_s, tick.planned_in_flight) == ("stage-1", 2.0, 160)


def test_only_the_last_request_may_end_a_phase(ticks: TickMaker) -> None:
    """Such is what comes after the warm-up of a run with a number of requests."""
    standing = plan(**{"requests": 1000, "warm-up": "4s"})
    warm, main = (ticks.build_tick(standing, workers=2, now=now) for now in (10.5, 16.0))
    assert (warm.sample.phase, warm.phase_left_s) == ("warm-up", 0.5)
    assert (main.sample.phase, main.phase_left_s) == ("main", None)


def test_a_tick_of_a_run_with_a_rate_has_its_plan_and_the_worst_clock_bound(ticks: TickMaker) -> None:
    """Of the second before it; a run without a rate has neither, whatever workers know."""
    spec = parse_spec(Source(None, {"url": "http://h/", "stages": ["ramp=4s:0..40/s", "soak=6s:40/s"]}))
    plain = build_standing()
    period = PeriodRecord(starts_at=10.0, offset_s=0.0)
    standing = replace(plain, record=replace(plain.record, spec=spec), period=period)
    for bound_s in (0.002, 0.007, None):
        ticks.add(build_progress(clock_bound_s=bound_s))
    sample = ticks.build_tick(standing, workers=2, now=13.0).sample
    assert (sample.requests_planned, sample.phase, sample.clock_bound_s) == (25, "ramp", 0.007)
    sample = ticks.build_tick(standing, workers=2, now=15.0).sample
    assert (sample.requests_planned, sample.phase, sample.clock_bound_s) == (40, "soak", None)
    ticks.add(build_progress(clock_bound_s=0.002))
    sample = ticks.build_tick(plain, workers=2, now=16.0).sample
    assert (sample.requests_planned, sample.phase, sample.clock_bound_s) == (None, "", None)


TARGETS = (Target(name="item", url="/item"), Target(name="buy", url="/buy"))


@pytest.fixture
def target_ticks() -> TargetTicks:
    """No tick was made yet."""
    return TargetTicks()


@pytest.fixture
def accounts() -> RunAccount:
    """Of two phases, one of them the warm-up; nothing was bought."""
    accounts = RunAccount()
    accounts.parts.open(("warm-up", "item")).add(build_closed_part([50_000]))
    accounts.parts.open(("main", "item")).add(build_closed_part([1000, 2000, 3000], 1))
    return accounts


def test_a_target_has_the_counts_of_all_phases_and_the_quantiles_of_those_measured(
    target_ticks: TargetTicks, accounts: RunAccount
) -> None:
    """One of which nothing is accounted is there, too."""
    assert target_ticks.build("r1", TARGETS, accounts) == [
        TargetTick(name="item", outcomes=make_counts(4, timeout=1), p50_ms=2.0, p99_ms=3.0),
        TargetTick(name="buy", outcomes=build_no_counts()),
    ]


def test_new_latencies_change_the_quantiles(target_ticks: TargetTicks, accounts: RunAccount) -> None:
    """So they do in a phase that has just begun."""
    target_ticks.build("r1", TARGETS, accounts)
    accounts.parts.open(("main", "item")).add(build_closed_part([1000] * 10))
    accounts.parts.open(("after", "item")).add(build_closed_part([4000]))
    item, _ = target_ticks.build("r1", TARGETS, accounts)
    assert (sum(item.outcomes), item.p50_ms, item.p99_ms) == (16, 1.0, 4.0)


def test_the_quantiles_of_another_run_are_its_own(target_ticks: TargetTicks, accounts: RunAccount) -> None:
    """As many latencies are not the same latencies."""
    target_ticks.build("r1", TARGETS, accounts)
    other = RunAccount()
    other.parts.open(("main", "item")).add(build_closed_part([8000] * 3))
    item, _ = target_ticks.build("r2", TARGETS, other)
    assert (item.p50_ms, item.p99_ms) == (8.0, 8.0)


def test_inner_requests_have_the_same_by_name(target_ticks: TargetTicks, accounts: RunAccount) -> None:
    """They are sorted; those of the warm-up count, but are not measured."""
    for part, latencies_us in (
        (("main", "orders"), [2000]),
        (("warm-up", "login"), [9000]),
        (("main", "login"), [1000]),
    ):
        accounts.inner.open(part).add(build_inner(part[1], latencies_us))
    assert target_ticks.build_inner("r1", accounts) == [
        TargetTick(name="login", outcomes=make_counts(2), p50_ms=1.0, p99_ms=1.0),
        TargetTick(name="orders", outcomes=make_counts(1), p50_ms=2.0, p99_ms=2.0),
    ]


def test_of_very_many_names_those_with_the_most_requests_are_told(target_ticks: TargetTicks) -> None:
    """A tick comes each second, to everybody who follows the run."""
    accounts = RunAccount()
    for number in range(MOST_NAMES + 20):
        account = accounts.inner.open(("", f"item {number:03}"))
        account.add(build_inner("", [1000] * (1 + number % 60)))
    told = target_ticks.build_inner("r1", accounts)
    assert len(told) == MOST_NAMES
    assert [each.name for each in told] == sorted(each.name for each in told)
    assert min(sum(each.outcomes) for each in told) == 11

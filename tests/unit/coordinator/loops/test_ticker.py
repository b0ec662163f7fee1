from collections.abc import Callable, Sequence

import pytest
from tests.kit.coordinators.iterations import USER_CODE, build_inner, build_iterations
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.parts import build_histogram
from tests.kit.coordinators.transactions import change, commit_after_next_read, read
from tests.kit.outcomes import make_counts

from oku_coordinator.assembly import Assembly
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.loops.ticker import find_tick_pause_s
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Progress, RunProgress
from oku_core.spec.spec import Spec
from oku_core.summary.tick import Tick


@pytest.mark.parametrize(
    ("now", "pause_s"), [(10.0, 1.0), (10.2, 0.8), (10.3, 1.7), (25.004, 0.996), (9.999, 1.001)]
)
def test_ticks_are_due_at_whole_seconds_and_never_close(now: float, pause_s: float) -> None:
    """A slightly late tick does not shift the next; after a very late one a second is left out."""
    assert find_tick_pause_s(now) == pytest.approx(pause_s)


def catch_ticks(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> Sequence[Tick]:
    """The ticks that are made from now on."""
    ticks: list[Tick] = []
    monkeypatch.setattr(parts.runs.followers, "publish", ticks.append)
    return ticks


def test_ticks_and_metrics_tell_of_inner_requests(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the run of user code that is active."""
    ticks = catch_ticks(parts, monkeypatch)
    ledger = parts.base.ledger
    change(ledger, create_run, "r1", USER_CODE, 0.0)
    run = change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    lease = deal_lease(ledger, "r1", 10, 2.0)
    final = build_checkpoint(lease, inner=[build_inner("login", [1001] * 7)], parts=[build_iterations(10)])
    apply_batches(ledger, [build_batch(lease, final)], 5.0)
    parts.ticker.switch_to(run)
    parts.ticker.tick()
    assert [(each.name, each.outcomes, each.p50_ms) for each in ticks[0].inner_requests] == [
        ("login", make_counts(7), 1.001)
    ]
    counter = 'oku_inner_requests_total{name="login",outcome="ok",run="r1"} 7.0'
    assert counter in parts.base.telemetry.metrics.expose()[0].decode()


def test_a_tick_is_of_one_state_of_the_ledger(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints may be committed between any two transactions: each iteration has one request."""
    ticks = catch_ticks(parts, monkeypatch)
    ledger = parts.base.ledger
    change(ledger, create_run, "r1", USER_CODE, 0.0)
    parts.ticker.switch_to(change(ledger, change_state, "r1", RunState.RUNNING, 1.0))
    lease = deal_lease(ledger, "r1", 10, 2.0)
    dones = iter(range(1, 10))

    def commit() -> None:
        done = next(dones)
        inner, iterations = build_inner("login", [1001] * done), build_iterations(done)
        checkpoint = build_checkpoint(
            lease, done, sequence=done, is_final=False, inner=[inner], parts=[iterations]
        )
        apply_batches(ledger, [build_batch(lease, checkpoint)], 5.0)
        commit_after_next_read(monkeypatch, ledger, commit)

    commit()
    parts.ticker.tick()
    assert next(dones) > 2
    assert [each.outcomes for each in ticks[0].inner_requests] == [ticks[0].sample.outcomes_so_far]


def test_other_runs_have_no_inner_requests(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a run of user code that has made none."""
    ticks = catch_ticks(parts, monkeypatch)
    for name, spec in (("r1", Spec(requests=100)), ("r2", USER_CODE)):
        change(parts.base.ledger, create_run, name, spec, 0.0)
        parts.ticker.switch_to(change(parts.base.ledger, change_state, name, RunState.RUNNING, 1.0))
        parts.ticker.tick()
        assert "oku_inner_requests_total{" not in parts.base.telemetry.metrics.expose()[0].decode()
        change(parts.base.ledger, change_state, name, RunState.FAILED, 2.0)
    assert [tick.inner_requests for tick in ticks] == [[], []]


def begin(parts: Assembly, name: str, at: float, **spec: float) -> RunRecord:
    """A run begins and has its turn."""
    change(parts.base.ledger, create_run, name, Spec(requests=100, **spec), at)  # type: ignore[arg-type]
    run = change(parts.base.ledger, change_state, name, RunState.RUNNING, at)
    parts.ticker.switch_to(run)
    return run


@pytest.fixture
def set_clock(parts: Assembly) -> Callable[[float], None]:
    """Sets the clock of the ticker."""

    def set_(now: float) -> None:
        parts.ticker.clock = lambda: now

    set_(1000.0)
    return set_


def build_times(*values_us: list[int]) -> dict[Time, HistogramSnapshot]:
    """The distributions of these values, in the order of `LIVE_TIMES`."""
    return {time: build_histogram(values) for time, values in zip(LIVE_TIMES, values_us, strict=True)}


LATE = RunProgress(
    in_flight=3, outcomes=make_counts(40), bytes_received=400, sent=2, lag_s=0.3,
    times=build_times([700_000] * 40, [800_000] * 40, [90_000] * 40),
)  # fmt: skip
EARLY = RunProgress(
    in_flight=5, outcomes=make_counts(7), bytes_received=7, sent=12, lag_s=0.001,
    times=build_times([1000] * 7, [2000] * 7, [30] * 7),
)  # fmt: skip


def speak(parts: Assembly, sequence: int, **runs: RunProgress) -> None:
    """A worker tells of a second of these runs."""
    parts.ticker.record(
        [Progress(worker="w1", incarnation="b1", at=float(sequence), sequence=sequence, runs=runs)], 0.0
    )


def test_a_run_has_nothing_of_the_one_before_it(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, set_clock: Callable[[float], None]
) -> None:
    """The last answers of the one and the first of the next are in one message."""
    ticks = catch_ticks(parts, monkeypatch)
    begin(parts, "r1", 1000.0)
    set_clock(1001.003)
    speak(parts, 1, r1=LATE)
    parts.ticker.tick()
    change(parts.base.ledger, change_state, "r1", RunState.FAILED, 1001.3)
    begin(parts, "r2", 1001.5)
    set_clock(1002.003)
    speak(parts, 2, r1=LATE, r2=EARLY)
    parts.ticker.tick()
    samples = [tick.sample for tick in ticks]
    assert [tick.run for tick in ticks] == ["r1", "r2"]
    for sample, done in zip(samples, (LATE, EARLY), strict=True):
        assert (sample.outcomes, sample.requests_sent, sample.in_flight) == (
            done.outcomes, done.sent, done.in_flight,
        )  # fmt: skip
        assert (sample.bytes_received, sample.lag_s) == (done.bytes_received, done.lag_s)
        assert sample.times == done.times


def test_the_first_words_on_a_run_count_though_no_tick_was_made_of_it(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, set_clock: Callable[[float], None]
) -> None:
    """A worker may speak before the round is over in which the run began."""
    ticks = catch_ticks(parts, monkeypatch)
    change(parts.base.ledger, create_run, "r1", Spec(requests=100), 0.0)
    change(parts.base.ledger, change_state, "r1", RunState.RUNNING, 1000.0)
    speak(parts, 1, r1=EARLY)
    set_clock(1001.0)
    parts.ticker.tick()
    assert ticks[0].sample.outcomes == make_counts(7)


def test_a_dead_target_is_not_alive_by_the_answers_of_another_run(
    parts: Assembly, set_clock: Callable[[float], None]
) -> None:
    """The next run ends as it does alone."""
    begin(parts, "r1", 1000.0)
    change(parts.base.ledger, change_state, "r1", RunState.FAILED, 1000.5)
    begin(parts, "r2", 1000.5, stop_when_down_s=3.0)
    refused = RunProgress(outcomes=make_counts(connect_error=5), in_flight=2)
    for second in range(1, 4):
        set_clock(1000.0 + second)
        speak(parts, second, r1=LATE, r2=refused)
        parts.ticker.tick()
    run = read(parts.base.ledger, fetch_run, "r2")
    assert run.state is RunState.FAILED
    assert run.reason.startswith(
        "the target is down: no request was ever ok within 3 s, most ended as connect"
    )


def test_a_tick_stands_for_the_second_that_was_due(
    parts: Assembly, monkeypatch: pytest.MonkeyPatch, set_clock: Callable[[float], None]
) -> None:
    """However late it is; a second that was left out belongs to the next one."""
    ticks = catch_ticks(parts, monkeypatch)
    begin(parts, "r1", 1000.4)
    for number, now in enumerate((1001.003, 1002.3, 1004.0, 1004.999)):
        set_clock(now)
        speak(parts, 2 * number, r1=EARLY)
        speak(parts, 2 * number + 1, r1=EARLY)
        parts.ticker.tick()
    assert [(tick.sample.at, tick.sample.seconds) for tick in ticks] == [
        (1001.0, 1.0), (1002.0, 1.0), (1004.0, 2.0), (1004.999, pytest.approx(0.999)),
    ]  # fmt: skip


def test_the_tick_that_was_due_is_made_before_that_of_the_rest(
    parts: Assembly, set_clock: Callable[[float], None]
) -> None:
    """A run that comes to rest a moment before its tick has a whole second and the rest, not one of both."""
    begin(parts, "r1", 1000.4)
    set_clock(1001.003)
    parts.ticker.tick()
    change(parts.base.ledger, change_state, "r1", RunState.FAILED, 1002.004)
    set_clock(1002.005)
    parts.ticker.switch_to(None)
    samples = read(parts.base.ledger, fetch_history, "r1").samples
    assert [(sample.at, sample.seconds) for sample in samples] == [
        (1001.0, 1.0), (1002.0, 1.0), (1002.005, pytest.approx(0.005)),
    ]  # fmt: skip

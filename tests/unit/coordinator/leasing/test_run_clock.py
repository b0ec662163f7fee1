from collections.abc import Callable

import pytest
from tests.kit.coordinators.leases import BeginRun
from tests.kit.coordinators.readiness import build_readiness
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.leasing.run_clock import RunClock
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.schedule_table import fetch_periods
from oku_coordinator.watches.turn import Turn
from oku_core.accounting.run_state import RunState


class TurnTwin(Turn):
    """A turn of a run that lacks so many workers."""

    missing = 0

    def count_missing(self, _: RunRecord) -> int:
        """So many as were set."""
        return self.missing


@pytest.fixture
def turn(ledger: Ledger) -> TurnTwin:
    """Nobody is missing."""
    return TurnTwin(ledger, build_readiness(ledger), 60.0, lambda: 0.0)


@pytest.fixture
def clock(ledger: Ledger, turn: TurnTwin) -> RunClock:
    """The clock of a run in this turn."""
    return RunClock(ledger=ledger, turn=turn)


def test_a_period_starts_a_moment_after_it_was_opened(clock: RunClock, begin_run: BeginRun) -> None:
    """The more workers there are, the longer it takes until all have leases."""
    run = begin_run()
    assert clock.find_period(run) is None
    opened = clock.open_period(run, 10.0, workers=500, lead_s=1.0)
    assert opened == clock.find_period(run)
    assert opened is not None
    assert (opened.starts_at, opened.offset_s, opened.stop_s) == (12.0, 0.0, None)
    assert [opened.measure_s(now) for now in (10.0, 12.0, 13.5)] == [0.0, 0.0, 1.5]
    assert [opened.count_s(now) for now in (10.0, 12.0, 13.5)] == [-2.0, 0.0, 1.5]


def test_a_period_waits_for_a_worker_and_for_a_while_for_all(
    clock: RunClock, begin_run: BeginRun, turn: TurnTwin
) -> None:
    """A run whose coordinator was restarted before its clock went is running before its workers are heard."""
    run = begin_run()
    turn.missing = 1
    assert clock.open_period(run, 10.0, workers=0, lead_s=1.0) is None
    assert clock.open_period(run, 11.0, workers=1, lead_s=1.0) is None
    assert clock.open_period(run, 15.9, workers=1, lead_s=1.0) is None
    assert clock.open_period(run, 16.1, workers=1, lead_s=1.0) is not None


def test_the_clock_goes_on_where_it_stopped(clock: RunClock, ledger: Ledger, begin_run: BeginRun) -> None:
    """It stops half a second after a run is paused; what was in flight may be due again."""
    run = begin_run()
    clock.open_period(run, 10.0, workers=1, lead_s=1.0)
    change(ledger, change_state, "r1", RunState.PAUSING, 15.0)
    [period] = read(ledger, fetch_periods, "r1")
    assert period.stop_s == pytest.approx(4.498)
    assert period.find_end() == pytest.approx(15.5)
    assert period.measure_s(100.0) == period.stop_s
    assert clock.find_period(run) is None
    change(ledger, change_state, "r1", RunState.PENDING, 20.0)
    run = change(ledger, change_state, "r1", RunState.RUNNING, 20.0)
    clock.open_period(run, 30.0, workers=1, lead_s=1.0, find_offset_s=lambda stop_s: stop_s - 1)
    assert [each.offset_s for each in read(ledger, fetch_periods, "r1")] == [0.0, pytest.approx(3.498)]


def test_a_period_that_was_stopped_before_it_started_has_no_length(
    clock: RunClock, ledger: Ledger, begin_run: BeginRun
) -> None:
    """A pause may come in the first second."""
    run = begin_run()
    clock.open_period(run, 10.0, workers=1, lead_s=1.0)
    change(ledger, change_state, "r1", RunState.PAUSING, 10.1)
    [period] = read(ledger, fetch_periods, "r1")
    assert period.stop_s == 0.0


def test_the_period_of_a_killed_stack_ends_with_its_last_checkpoint(
    clock: RunClock, ledger: Ledger, begin_run: BeginRun, deal: Callable[..., object]
) -> None:
    """Without one it was never open."""
    run = begin_run()
    clock.open_period(run, 10.0, workers=1, lead_s=1.0)
    pause_interrupted(ledger, 100.0)
    [period] = read(ledger, fetch_periods, "r1")
    assert period.stop_s == 0.0


def test_only_a_running_run_has_its_clock_started(
    clock: RunClock, ledger: Ledger, begin_run: BeginRun
) -> None:
    """It may have been paused meanwhile."""
    run = begin_run()
    change(ledger, change_state, "r1", RunState.PAUSING, 2.0)
    assert clock.open_period(run, 10.0, workers=1, lead_s=1.0) is None

from typing import Any

import pytest
from tests.kit.coordinators.counting_signals import CountingSignals
from tests.kit.coordinators.leases import (
    BeginRun,
    apply_batches,
    build_batch,
    build_checkpoint,
    build_part,
    deal_lease,
)
from tests.kit.coordinators.ticks import build_tick
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts, make_reasons

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.runs.notices import TargetNotices
from oku_coordinator.watches.target_watch import BACK_SHOWN_S, NEVER_OK_STOP_S, TargetWatch
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Part
from oku_core.results.event import EventType

OK, REFUSED = make_counts(50), make_counts(connect_error=50)
GONE = "the target is gone: no request has been ok for 10 s, most ended as connect error"
BACK = "the target answers again after 21 s"


class World:
    """A watch and a run, second by second."""

    def __init__(self, ledger: Ledger, begin_run: BeginRun) -> None:
        self.ledger = ledger
        self._begin_run = begin_run
        self.signals, self.shown = CountingSignals(), TargetNotices()
        self.watch = TargetWatch(ledger, self.shown, self.signals)
        self.second = 100

    def begin(self, **spec: Any) -> None:
        """Begin the run."""
        self._begin_run(**spec)

    def pass_seconds(self, seconds: int, outcomes: list[int], *, has_reports: bool = True) -> None:
        """Let so many seconds be alike."""
        for _ in range(seconds):
            self.second += 1
            tick = build_tick(float(self.second), {"outcomes": outcomes, "outcomes_so_far": outcomes})
            self.watch.record(self.run, tick, has_reports=has_reports)

    def deal(self, size: int) -> LeaseRecord:
        """Deal a lease of the run."""
        return deal_lease(self.ledger, "r1", size, 2.0)

    def account(self, lease: LeaseRecord, outcomes: list[int]) -> None:
        """Account for a lease, all of whose requests have such outcomes."""
        part = Part(outcomes=outcomes, per_second={3: outcomes}, reasons=make_reasons(outcomes))
        checkpoint = build_checkpoint(lease, parts=[part if not outcomes[0] else build_part(outcomes[0])])
        apply_batches(self.ledger, [build_batch(lease, checkpoint)], 5.0)

    @property
    def run(self) -> RunRecord:
        """The run."""
        return read(self.ledger, fetch_run, "r1")

    def find_state(self) -> RunState:
        """The state of the run now."""
        return self.run.state

    @property
    def notices(self) -> list[str]:
        """What is said of its target."""
        return [notice] if (notice := self.shown.find("r1")) else []

    @property
    def events(self) -> list[tuple[float, EventType, str]]:
        """What happened to its target."""
        events = read(self.ledger, fetch_history, "r1").events
        kinds = (EventType.TARGET_GONE, EventType.TARGET_BACK)
        return [(event.at, event.type, event.text) for event in events if event.type in kinds]


@pytest.fixture
def world(ledger: Ledger, begin_run: BeginRun) -> World:
    """No run has begun."""
    return World(ledger, begin_run)


def test_that_a_target_is_gone_is_said_until_it_is_back(world: World) -> None:
    """Both are events of the run; that it is back is also told for a while to those who watch."""
    world.begin()
    world.pass_seconds(5, OK)
    world.pass_seconds(20, REFUSED)
    assert world.notices == [GONE]
    world.pass_seconds(1, OK)
    assert world.notices == [BACK]
    world.pass_seconds(int(BACK_SHOWN_S) + 1, OK)
    assert world.notices == []
    assert world.events == [(115.0, EventType.TARGET_GONE, GONE), (126.0, EventType.TARGET_BACK, BACK)]
    assert world.run.state == RunState.RUNNING


def test_seconds_in_which_no_worker_was_heard_say_nothing(world: World) -> None:
    """The broker or all workers may be away."""
    world.begin(stop_when_down_s=10.0)
    world.pass_seconds(5, OK)
    world.pass_seconds(8, REFUSED)
    world.pass_seconds(100, REFUSED, has_reports=False)
    assert (world.notices, world.run.state) == ([], RunState.RUNNING)


def test_a_run_that_is_paused_and_resumed_begins_anew(world: World) -> None:
    """Nothing is said of a target that nobody asks."""
    world.begin()
    world.pass_seconds(5, OK)
    world.pass_seconds(8, REFUSED)
    for state in (RunState.PAUSING, RunState.PENDING):
        change(world.ledger, change_state, "r1", state, 120.0)
        world.pass_seconds(30, REFUSED)
    change(world.ledger, change_state, "r1", RunState.RUNNING, 150.0)
    world.pass_seconds(5, REFUSED)
    assert (world.notices, world.events) == ([], [])


def test_a_run_of_which_nothing_was_ever_ok_fails_with_the_reason(world: World) -> None:
    """Before that it is said that it will; the account stays exact, and it can be resumed."""
    world.begin()
    world.account(world.deal(10), make_counts(connect_error=10))
    world.pass_seconds(10, REFUSED)
    silence = "no request has been ok for 10 s, most ended as connect error"
    assert world.notices == [f"{silence}; the run ends after 30 s of this"]
    world.pass_seconds(int(NEVER_OK_STOP_S) - 11, REFUSED)
    assert (world.run.state, world.signals.wakes) == (RunState.RUNNING, 0)
    world.pass_seconds(1, REFUSED)
    assert (world.run.state, world.signals.wakes) == (RunState.FAILED, 1)
    assert world.run.reason == (
        "the target is down: no request was ever ok within 30 s, most ended as connect error; "
        "--stop-when-down sets the limit"
    )
    assert world.run.resent_at_most == 0
    assert world.notices == []
    change(world.ledger, change_state, "r1", RunState.PENDING, 200.0)


def test_a_run_of_which_something_was_ok_is_paused_once_its_leases_are_back(world: World) -> None:
    """Its target was there, and may be there again."""
    world.begin(stop_when_down_s=20.0)
    world.account(world.deal(10), make_counts(10))
    lease = world.deal(20)
    world.pass_seconds(5, OK)
    world.pass_seconds(19, REFUSED)
    assert world.notices == [f"{GONE}; the run ends after 20 s of this"]
    world.pass_seconds(1, REFUSED)
    assert world.find_state() == RunState.PAUSING
    world.account(lease, make_counts(connect_error=20))
    assert world.find_state() == RunState.PAUSED
    assert world.run.reason.startswith("the target is down: no request was ok within 20 s")
    assert world.run.resent_at_most == 0


def test_a_run_that_ends_for_another_reason_in_the_same_second_keeps_that_one(world: World) -> None:
    """A threshold that aborts is looked at first; the watch does not know of it yet."""
    world.begin()
    world.deal(10)
    world.pass_seconds(int(NEVER_OK_STOP_S) - 1, REFUSED)
    before = world.run
    change(world.ledger, change_state, "r1", RunState.CANCELLING, 130.0, "threshold lost: ok >= 1%: abort")
    tick = build_tick(130.0, {"outcomes": REFUSED, "outcomes_so_far": REFUSED})
    world.watch.record(before, tick, has_reports=True)
    assert (world.run.state, world.run.reason, world.signals.wakes) == (
        RunState.CANCELLING,
        "threshold lost: ok >= 1%: abort",
        0,
    )

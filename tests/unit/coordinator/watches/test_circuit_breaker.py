from typing import Any

import pytest
from tests.kit.coordinators.leases import (
    BeginRun,
    build_batch,
    build_checkpoint,
    build_incarnation,
    deal_lease,
)
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.leases import intake
from oku_coordinator.ledger.rules.lifecycle import change_state, fail
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.watches.circuit_breaker import PATIENCE_S, CircuitBreaker
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.interval import Lengths
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.messaging.progress import Progress
from oku_core.results.event import EventType

REFUSAL = "ca.pem: no such file"


class ReadinessTwin(Readiness):
    """It may expect workers."""

    def expects_workers(self) -> bool:
        """Whether that was said."""
        return bool(self.expected_workers)


class World:
    """A breaker, and a run of 100 requests that workers hold leases of."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.roster = Roster(10.0)
        self.expected: list[str] = []
        self.assignment = Assignment(ledger=ledger, roster=self.roster)
        self.readiness = ReadinessTwin(
            ledger, self.roster, Assignment(ledger=ledger, roster=self.roster), expected_workers=self.expected
        )
        self.breaker = CircuitBreaker(ledger, self.roster, self.assignment, self.readiness, lambda: 9.0)

    def record(self, *workers: str) -> None:
        """These workers speak, each as its own process."""
        for worker in workers:
            incarnation = build_incarnation(worker)
            self.roster.record(Progress(worker=worker, incarnation=incarnation, at=0.0), 0.0, 0.0)
        self.assignment.settle(read(self.ledger, fetch_current_run))

    def take_in(self, lease: LeaseRecord, now: float = 0.0, **changes: Any) -> None:
        """Let the worker that has a lease send its last checkpoint."""
        batch = build_batch(lease, build_checkpoint(lease, **changes))
        [receipt] = change(self.ledger, intake.fold_batches, [batch], lambda *_: 0, 5.0)
        self.breaker.record_receipt(receipt, now)

    def check(self, now: float) -> None:
        """Check the run."""
        self.breaker.check(self.run, now)

    def refuse(self, worker: str, now: float = 0.0) -> None:
        """Let a worker refuse a lease."""
        lease = deal_lease(self.ledger, "r1", 10, 2.0, worker=worker)
        self.take_in(lease, now, done=0, refusal=REFUSAL)

    def account(self) -> None:
        """Let a worker account for ten requests."""
        lease = deal_lease(self.ledger, "r1", 10, 2.0)
        self.take_in(lease)

    @property
    def run(self) -> RunRecord:
        """The run."""
        return read(self.ledger, fetch_run, "r1")


@pytest.fixture
def world(ledger: Ledger, begin_run: BeginRun) -> World:
    """A world with two live workers."""
    world = World(ledger)
    begin_run()
    world.record("w1", "w2")
    world.check(0.0)
    return world


def test_a_worker_that_refuses_is_barred_from_the_run_alone(world: World) -> None:
    """That is logged once, the run goes on with the others, and the worker may try another run."""
    world.refuse("w1")
    world.refuse("w1")
    world.check(100.0)
    assert world.run.state == RunState.RUNNING
    assert [worker.name for worker in world.roster.find_available("r1")] == ["w2"]
    assert len(world.roster.workers()) == len(world.roster.find_available("r2")) == 2
    told = [
        event
        for event in read(world.ledger, fetch_history, "r1").events
        if event.type == EventType.WORKER_BARRED
    ]
    assert [(event.worker, event.text) for event in told] == [
        ("w1", f"worker w1 cannot start the run: {REFUSAL}")
    ]


def test_one_that_comes_back_as_another_process_may_try_again(world: World) -> None:
    """Somebody may have mended the worker."""
    world.refuse("w1")
    world.roster.record(Progress(worker="w1", incarnation="another", at=0.0), 1.0, 1.0)
    assert len(world.roster.find_available("r1")) == 2


def test_a_run_that_nobody_can_begin_fails_after_a_while(world: World) -> None:
    """It fails with the reason, its leases are taken back, and it can be resumed."""
    deal_lease(world.ledger, "r1", 10, 2.0, limit=7)
    world.refuse("w1", now=10.0)
    world.refuse("w2", now=11.0)
    world.check(11.0 + PATIENCE_S - 0.1)
    assert world.run.state == RunState.RUNNING
    world.check(11.0 + PATIENCE_S)
    assert (world.run.state, world.run.reason) == (RunState.FAILED, f"worker w1: {REFUSAL} (and 1 more)")
    assert check_ledger(world.ledger, "r1") == Lengths(pending=100, leased=0, accounted=0)
    assert world.run.resent_at_most == 7
    assert change(world.ledger, change_state, "r1", RunState.PENDING, 20.0).reason == ""
    assert world.roster.find_available("r1") == []
    world.roster.forget_refusals("r1")
    assert len(world.roster.find_available("r1")) == 2


def test_a_run_of_which_something_is_accounted_is_paused_instead(world: World) -> None:
    """Some worker could carry it out once; it waits for such a one without holding up others."""
    world.account()
    for worker in ("w1", "w2"):
        world.refuse(worker)
    world.check(PATIENCE_S)
    assert (world.run.state, world.run.reason) == (RunState.PAUSED, f"worker w1: {REFUSAL} (and 1 more)")


def test_as_long_as_workers_are_expected_it_waits_for_them(world: World) -> None:
    """Pods come up one after the other."""
    world.expected.append("w3")
    for worker in ("w1", "w2"):
        world.refuse(worker)
    world.check(100.0)
    assert world.run.state == RunState.RUNNING


@pytest.mark.parametrize(("workers", "losses"), [(2, 5), (4, 5), (5, 6), (100, 101)])
def test_a_run_that_kills_worker_after_worker_fails(world: World, workers: int, losses: int) -> None:
    """It takes five losses in a row and more than there were workers: the loss of a node does not count."""
    world.record(*(f"w{number}" for number in range(1, workers + 1)))
    world.check(0.0)
    world.breaker.record_losses(f"b{number}" for number in range(losses - 1))
    world.breaker.record_losses(["b0"])
    world.check(1.0)
    assert world.run.state == RunState.RUNNING
    world.breaker.record_losses(["another"])
    world.check(2.0)
    assert (world.run.state, world.run.reason) == (
        RunState.FAILED,
        f"{losses} workers in a row died with its leases, and no request was accounted in between",
    )


def test_a_worker_may_die_before_the_first_check_of_its_run(ledger: Ledger, begin_run: BeginRun) -> None:
    """Its loss counts like any other."""
    world = World(ledger)
    begin_run()
    world.record("w1")
    world.breaker.record_losses(["b0"])
    world.check(0.0)
    world.breaker.record_losses(["b1", "b2", "b3", "b4"])
    world.check(1.0)
    assert world.run.state == RunState.FAILED


def test_losses_are_in_a_row_only_while_nothing_is_accounted(world: World) -> None:
    """Workers that die now and then in a long run do not end it."""
    world.breaker.record_losses(["b1", "b2", "b3"])
    world.account()
    world.breaker.record_losses(["b4", "b5", "b6", "b7"])
    world.check(1.0)
    assert world.run.state == RunState.RUNNING


def test_a_run_whose_account_does_not_balance_is_not_resumed(world: World) -> None:
    """Nobody knows what is left of it."""
    change(world.ledger, lambda transaction: fail(transaction, "r1", "it does not balance", 19.0))
    with pytest.raises(TransitionError, match="run r1 is failed, it cannot become pending"):
        change(world.ledger, change_state, "r1", RunState.PENDING, 20.0)

import math
import random

import pytest

from oku_benchmarks.simulated_worker import SimulatedWorker
from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.checkpoint import Checkpoint
from oku_core.messaging.checkpoint_faults import find_fault
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control
from oku_core.spec.spec import Spec

LENGTH, WINDOW, RATE_RPS = 500, 20, 100.0


def build_worker(limit: int) -> SimulatedWorker:
    """A worker that was given one lease at second 100."""
    worker = SimulatedWorker("w1", "b1", RATE_RPS, 100.0)
    lease = Lease(id="r1.000000001.x", run="r1", ranges=[(0, 300), (1000, 1200)], limit=limit)
    spec = Spec(requests=LENGTH, concurrency=WINDOW)
    batch = LeaseBatch(run="r1", incarnation="b1", leases=[lease], start_by=130.0, spec=spec)
    assert worker.take(batch, 100.0) == [lease.id]
    assert worker.take(batch, 100.0) == []
    return worker


def ask(worker: SimulatedWorker, now: float) -> Checkpoint:
    """The checkpoint of its only lease."""
    batch = worker.build_checkpoints(now)
    assert batch is not None
    [checkpoint] = batch.checkpoints
    return checkpoint


@pytest.mark.parametrize("seed", range(5))
def test_each_checkpoint_is_true_and_contains_its_predecessor(seed: int) -> None:
    """Whatever is confirmed meanwhile, and whenever it is asked, up to one that is final."""
    chance, worker, now = random.Random(seed), build_worker(LENGTH), 100.0
    before, stored, confirmed = Checkpoint(lease="", sequence=0, done=0, end=LENGTH), dict[int, int](), 0
    while not before.is_final:
        now += chance.uniform(0.05, 2.0)
        checkpoint = ask(worker, now)
        assert find_fault(checkpoint, LENGTH) is None
        assert (checkpoint.sequence, checkpoint.done) > (before.sequence, before.done - 1)
        assert {position for position in checkpoint.in_flight if position < before.done} <= set(
            before.in_flight
        )
        for part in checkpoint.parts:
            stored |= {second: counts[0] for second, counts in part.per_second.items()}
            assert sum(stored.values()) == part.outcomes[0] == checkpoint.covered
        if chance.random() < 0.5:
            confirmed = checkpoint.sequence
            worker.obey_control(Control(incarnation="b1", confirmed={checkpoint.lease: confirmed}), now)
        before = checkpoint
    assert (before.done, before.in_flight, sum(stored.values())) == (LENGTH, [], LENGTH)
    assert len(OUTCOMES) == len(before.parts[0].outcomes)


def test_it_passes_no_limit_and_goes_on_when_it_is_raised() -> None:
    """The time in which it may not go on is counted."""
    worker = build_worker(50)
    assert ask(worker, 102.0).done == 50
    assert worker.waited_s == pytest.approx(1.5)
    worker.obey_control(Control(incarnation="b1", limits={"r1.000000001.x": 120}), 102.0)
    assert ask(worker, 102.5).done == 100
    assert ask(worker, 104.0).done == 120


def test_it_ends_where_it_is_told_to_or_at_what_it_has_taken() -> None:
    """It says so at once, and answers what is in flight."""
    worker = build_worker(LENGTH)
    assert ask(worker, 102.0).done == 200
    worker.obey_control(Control(incarnation="b1", ends={"r1.000000001.x": 10}), 103.0)
    assert worker.next_at == 103.0
    told = ask(worker, 103.0)
    assert (told.done, told.end, told.is_final) == (300, 300, False)
    assert ask(worker, 104.0).is_final


def test_it_asks_for_more_before_its_limit_is_reached_and_forgets_what_is_confirmed() -> None:
    """Two thirds of what it was allowed are gone after a third of a second; an answer must have come."""
    worker = build_worker(50)
    first = ask(worker, 100.0)
    assert (first.done, worker.next_at) == (0, 101.0)
    worker.obey_control(Control(incarnation="b1", confirmed={first.lease: first.sequence}), 100.0)
    assert worker.next_at == pytest.approx(100 + 1 / 3, abs=0.01)
    final = build_worker(LENGTH)
    last = ask(final, 110.0)
    assert last.is_final
    final.obey_control(Control(incarnation="b1", confirmed={last.lease: last.sequence}), 110.0)
    assert final.next_at == math.inf
    assert final.build_checkpoints(111.0) is None

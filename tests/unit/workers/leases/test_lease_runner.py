import asyncio
import time
from collections.abc import Callable

import msgspec
import pytest
from tests.kit.outcomes import make_counts
from tests.kit.workers.engines_in_memory import (
    NEVER,
    OTHER_SPEC,
    SPEC,
    Bench,
    build_lease,
    settle,
)
from tests.kit.workers.whole_share import build_whole_share

from oku_core.accounting.outcome import OK, build_no_counts
from oku_core.messaging.checkpoint import Checkpoint
from oku_core.messaging.codec import LeaseBatchHead, LeaseHead
from oku_core.messaging.lease import LeaseBatch, build_lease_id
from oku_core.messaging.order import ClockNotice, Control, Stop
from oku_core.messaging.progress import LeaseProgress
from oku_core.process.clock import fetch_kernel_id
from oku_core.spec.spec import Engine, Spec
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.leases.checkpointer import DEFAULT_INTERVAL_S


def list_checkpoints(bench: Bench, lease: str) -> list[Checkpoint]:
    """All that was sent of a lease."""
    return [each for batch in bench.sent for each in batch.checkpoints if each.lease == lease]


async def test_a_lease_ends_in_a_final_checkpoint(build_bench: Callable[[], Bench]) -> None:
    """It comes at once, and when it is confirmed the lease is forgotten."""
    bench = build_bench()
    [account] = bench.take(build_lease(0, 10))
    await settle()
    await bench.engine.work()
    assert bench.runner.lease_ids == [build_lease(0, 10).id]
    await asyncio.sleep(0.1)
    assert account.checkpoint.is_final
    assert (account.checkpoint.done, account.outcomes) == (10, make_counts(10))
    assert bench.runner.lease_ids == []
    assert bench.runner.has_sent_all
    # One that ends while there is more to take waits for the next checkpoints.
    bench = build_bench()
    await asyncio.sleep(DEFAULT_INTERVAL_S * 2)
    [first] = bench.take(build_lease(0, 3))
    bench.take(build_lease(3, 100))
    await settle()
    bench.engine.fill()
    bench.engine.answer_all()
    await asyncio.sleep(0.2)
    assert not list_checkpoints(bench, build_lease(0, 3).id)
    await asyncio.sleep(DEFAULT_INTERVAL_S)
    assert first.checkpoint.is_final
    # Many that end are told of at once.
    bench = build_bench()
    await asyncio.sleep(DEFAULT_INTERVAL_S * 2)
    bench.take(*(build_lease(number, number + 1) for number in range(50)))
    await settle()
    for _ in range(2):
        bench.engine.fill()
        bench.engine.answer_all()
        await asyncio.sleep(0.1)
    assert len(bench.sent[-1].checkpoints) >= 6


async def test_a_lease_under_way_is_told_of_again_and_again(bench: Bench) -> None:
    """What is in flight and what came of the rest is told at the interval; each message contains the last."""
    [account] = bench.take(build_lease(0, 1000))
    await settle()
    for _ in range(100):
        bench.engine.fill()
        bench.engine.flights.pop(0)[0].answer(OK, 200, 1500, 10)
        await asyncio.sleep(0.1)
    checkpoints = list_checkpoints(bench, build_lease(0, 1000).id)
    assert 5 <= len(checkpoints) <= 8
    assert all(len(each.in_flight) in {2, 3} for each in checkpoints)
    assert account.checkpoint.done > 60


async def test_what_nobody_confirms_is_repeated(bench: Bench) -> None:
    """The final checkpoint of a lease is sent until it is confirmed, and then no more."""
    bench.is_confirming = False
    lease = build_lease(0, 3)
    bench.take(lease)
    await settle()
    await bench.engine.work()
    await asyncio.sleep(10.0)
    assert len(list_checkpoints(bench, lease.id)) >= 4
    assert len({msgspec.json.encode(each) for each in list_checkpoints(bench, lease.id)}) == 1
    assert list(bench.runner.build_progress().leases) == [lease.id]
    bench.confirm_all()
    sent = len(bench.sent)
    await asyncio.sleep(10.0)
    assert len(bench.sent) == sent
    assert bench.runner.lease_ids == []


async def test_a_doubled_lease_is_executed_once(build_bench: Callable[[], Bench]) -> None:
    """Its message has no effect while it is under way, and none after its end."""
    bench = build_bench()
    lease = build_lease(0, 5)
    bench.take(lease, lease)
    bench.take(lease)
    await settle()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    bench.take(lease)
    await settle()
    assert bench.runner.lease_ids == []
    assert [each.is_final for each in list_checkpoints(bench, lease.id)] == [True]
    # A lease under way does not begin again when its message is stale.
    bench = build_bench()
    lease = build_lease(0, 5)
    start_by = asyncio.get_running_loop().time() + 1.0
    bench.take(lease, start_by=start_by)
    await settle()
    bench.engine.fill()
    await asyncio.sleep(2.0)
    bench.take(lease, start_by=start_by)
    assert bench.runner.build_progress().leases == {lease.id: LeaseProgress(3, 5, build_no_counts())}


@pytest.mark.parametrize("is_stopped", [True, False])
async def test_what_cannot_be_begun_is_given_back(bench: Bench, *, is_stopped: bool) -> None:
    """A final checkpoint says that nothing was taken, and nothing will be; no engine is needed for it."""
    if is_stopped:
        bench.runner.stop_all(0)
    [account] = bench.take(build_lease(0, 5), start_by=1e12 if is_stopped else 0.0)
    await asyncio.sleep(0.1)
    assert (account.checkpoint.is_final, account.checkpoint.done, account.checkpoint.end) == (True, 0, 0)
    assert (bench.built.engines, bench.runner.lease_ids) == ([], [])


async def test_an_empty_lease_ends_at_once(
    build_bench: Callable[[], Bench], caplog: pytest.LogCaptureFixture
) -> None:
    """It may be forged, and must not stay in hand for ever."""
    bench = build_bench()
    lease = msgspec.structs.replace(build_lease(0, 5), ranges=[])
    [account] = bench.take(lease)
    await asyncio.sleep(0.1)
    assert (account.checkpoint.is_final, account.checkpoint.done) == (True, 0)
    # Ranges that do not rise are dropped.
    bench = build_bench()
    forged = msgspec.structs.replace(build_lease(0, 5), ranges=[(5, 9), (0, 5)])
    leases = [forged, build_lease(10, 20)]
    bench.runner.accept(
        LeaseBatch(
            run="r1",
            incarnation="b1",
            leases=leases,
            start_by=NEVER,
            spec=SPEC,
            share=build_whole_share("r1"),
        )
    )
    assert bench.runner.lease_ids == [build_lease(10, 20).id]
    assert "is dropped: the range [0, 5) is empty or does not follow on 9" in caplog.text


async def test_a_limit_is_not_passed_and_a_rise_is_asked_for(build_bench: Callable[[], Bench]) -> None:
    """Nothing is taken beyond it until it rises, and the coordinator is asked at once for more."""
    bench = build_bench()
    [account] = bench.take(build_lease(0, 20, limit=4))
    await settle()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert (account.checkpoint.done, account.checkpoint.is_final) == (4, False)
    bench.control(limits={build_lease(0, 20).id: 2})
    await bench.engine.work()
    bench.control(limits={build_lease(0, 20).id: 9})
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert account.checkpoint.done == 9
    # A worker that may take nothing asks again and again.
    bench = build_bench()
    lease = build_lease(0, 20, limit=4)
    bench.take(lease)
    await settle()
    await bench.engine.work()
    await asyncio.sleep(20.0)
    sequences = [each.sequence for each in list_checkpoints(bench, lease.id)]
    assert sequences == list(range(1, len(sequences) + 1))
    assert 6 <= len(sequences) <= 15
    # A worker that may take nothing of a run asks for that run.
    bench = build_bench()
    bench.take(build_lease(0, 3))
    await settle()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert (bench.sent[-1].run, bench.sent[-1].taken) == ("r1", 3)
    bench.take(build_lease(5, 20, run="r2", limit=0))
    await asyncio.sleep(10.0)
    assert (bench.sent[-1].run, bench.sent[-1].taken, bench.sent[-1].rate_rps) == ("r2", 0, 0.0)


@pytest.mark.parametrize("ahead_s", [None, 5.0, -5.0])
async def test_a_message_says_up_to_when_it_tells(bench: Bench, ahead_s: float | None) -> None:
    """By the clock that is behind: what has ended is counted by one, what was sent by the other.

    The worker's shows 1000 s.
    """
    if ahead_s is not None:
        offset_ns = int((1000 + ahead_s) * 1e9) - time.monotonic_ns()
        bench.runner.coordinator_clock.set_notice(ClockNotice(kernel=fetch_kernel_id(), offset_ns=offset_ns))
    bench.take(build_lease(0, 3))
    await settle()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert bench.sent[-1].told_to == pytest.approx(1000 + min(0.0, ahead_s or 0.0), abs=2.0)


async def test_a_worker_asks_for_more_when_a_third_of_what_may_be_taken_is_left(bench: Bench) -> None:
    """The answer comes before the rest is taken."""
    [account] = bench.take(build_lease(0, 100, limit=20))
    await settle()
    for _ in range(4):
        bench.engine.fill()
        bench.engine.answer_all()
    await asyncio.sleep(0.06)
    assert account.newest is None
    bench.engine.fill()
    bench.engine.answer_all()
    await asyncio.sleep(0.06)
    assert account.checkpoint.done == 15


async def test_a_worker_that_may_take_much_asks_when_eight_seconds_of_work_are_left(bench: Bench) -> None:
    """With rare checkpoints a third would be half a minute, and half as many messages more."""
    bench.runner.set_checkpoint_interval(100.0)
    [account] = bench.take(build_lease(0, 1000, limit=100))
    await settle()

    async def work_until_sent(messages: int) -> None:
        while len(bench.sent) < messages:
            bench.engine.fill()
            bench.engine.flights.pop(0)[0].answer(OK, 200, 1500, 10)
            await asyncio.sleep(0.1)

    await work_until_sent(2)  # the first one was due before the interval was known
    bench.control(limits={build_lease(0, 1000).id: 600})
    await work_until_sent(3)
    assert account.checkpoint.done == pytest.approx(600 - 8 * 10, abs=5)


@pytest.mark.parametrize(("asked", "end"), [(7, 7), (3, 3), (2, 3), (0, 3)])
async def test_a_lease_is_shortened_as_far_as_it_can_be(bench: Bench, asked: int, end: int) -> None:
    """What was taken stays; the answer comes at once and says where it ends."""
    [account] = bench.take(build_lease(100, 120))
    await settle()
    bench.engine.fill()

    bench.control(ends={build_lease(100, 120).id: asked})
    await asyncio.sleep(0.06)

    assert (account.checkpoint.done, account.checkpoint.end, account.checkpoint.is_final) == (3, end, False)
    bench.engine.answer_all()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert account.checkpoint.is_final
    assert account.outcomes[0] == end


async def test_a_wish_that_cannot_be_granted_is_answered_until_the_answer_is_confirmed(bench: Bench) -> None:
    """Whoever repeats it then knows it all: more answers would be as many messages as orders."""
    [account] = bench.take(build_lease(0, 20))
    await settle()
    bench.engine.fill()
    bench.is_confirming = False
    bench.control(ends={build_lease(0, 20).id: 0})
    await asyncio.sleep(0.06)
    assert (account.checkpoint.sequence, account.checkpoint.end) == (1, 3)
    bench.control(ends={build_lease(0, 20).id: 0})
    await asyncio.sleep(1.5)
    assert [each.sequence for each in list_checkpoints(bench, build_lease(0, 20).id)] == [1, 1]
    bench.confirm_all()
    bench.control(ends={build_lease(0, 20).id: 0})
    await asyncio.sleep(1.5)
    assert len(bench.sent) == 2


async def test_a_lease_that_was_ended_before_it_came_is_not_begun(build_bench: Callable[[], Bench]) -> None:
    """The coordinator is told so when it asks, and its lease may still come."""
    bench = build_bench()
    lease = build_lease(0, 20, name="r1.000000007.aa")
    bench.book.open(lease)
    bench.control(ends={lease.id: 0})
    await asyncio.sleep(0.1)
    [account] = bench.take(lease)
    await asyncio.sleep(0.1)
    assert (account.checkpoint.is_final, account.checkpoint.done, account.checkpoint.end) == (True, 0, 0)
    assert (bench.built.engines, bench.runner.lease_ids) == ([], [])
    # A lease that is over is not told of again.
    bench = build_bench()
    lease = build_lease(0, 3)
    bench.take(lease)
    await settle()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    sent = len(bench.sent)
    bench.control(ends={lease.id: 0}, limits={lease.id: 9}, confirmed={lease.id: 9})
    bench.control(ends={"r9.000000001.aa": 5})
    await asyncio.sleep(0.1)
    assert len(bench.sent) == sent
    assert bench.runner.lease_ids == []


async def test_a_lease_that_was_taken_back_does_not_slow_others_down(bench: Bench) -> None:
    """It is not confirmed before its last answer, and other leases need higher limits meanwhile."""
    bench.is_confirming = False
    void, other = build_lease(0, 1), build_lease(1, 1000, limit=4)
    bench.take(void)
    await settle()
    bench.engine.fill()
    [account] = bench.take(other)
    await settle()
    stuck, seen = bench.engine.flights[0], 0
    for _ in range(250):
        bench.engine.fill()
        bench.engine.flights.remove(stuck)
        bench.engine.answer_all()
        bench.engine.flights.append(stuck)
        await asyncio.sleep(0.02)
        for batch in bench.sent[seen:]:
            told = {each.lease: each for each in batch.checkpoints}
            mine = told.pop(other.id, None)
            bench.control(
                confirmed={mine.lease: mine.sequence} if mine else {},
                limits={mine.lease: mine.done + 4} if mine else {},
                ends=dict.fromkeys(told, 0),
            )
        seen = len(bench.sent)
    assert account.checkpoint.done > 200
    assert 2 <= len(list_checkpoints(bench, void.id)) <= 5
    assert {each.sequence for each in list_checkpoints(bench, void.id)} == {1}


async def test_a_lease_that_is_over_is_not_given_back_as_unbegun(bench: Bench) -> None:
    """Whoever has not heard of its end, although it was confirmed, takes it back and counts what was sent."""
    lease = build_lease(0, 3, name="r1.000000001.aa")
    bench.take(lease, start_by=asyncio.get_running_loop().time() + 60)
    await settle()
    bench.engine.fill()
    await asyncio.sleep(300.0)
    bench.engine.answer_all()
    await asyncio.sleep(0.1)
    assert bench.runner.lease_ids == []
    bench.take(build_lease(3, 6))  # what can be forgotten is forgotten as others come
    sent = len(list_checkpoints(bench, lease.id))
    for _ in range(10):
        bench.control(ends={lease.id: 0})
        await asyncio.sleep(3.0)
    assert len(list_checkpoints(bench, lease.id)) == sent


async def test_control_of_another_process_is_dropped(bench: Bench) -> None:
    """A process before this one may have had the lease."""
    bench.take(build_lease(0, 20))
    bench.runner.control(Control(incarnation="b0", ends={build_lease(0, 20).id: 0}))
    assert bench.runner.build_progress().leases[build_lease(0, 20).id].end == 20


async def test_a_stop_ends_leases_within_the_grace_time(build_bench: Callable[[], Bench]) -> None:
    """Replaying the order of a pause after the run was resumed stops nothing, and other runs go on."""
    bench = build_bench()
    ids = [build_lease_id("r1", 7), build_lease_id("r1", 8), build_lease_id("r2", 3)]
    accounts = [
        bench.take(build_lease(0, 9, name=ids[0]))[0],
        bench.take(build_lease(9, 18, name=ids[1]))[0],
        bench.take(build_lease(0, 9, run="r2", name=ids[2]))[0],
    ]
    await settle()
    bench.engine.fill()
    bench.runner.stop(Stop(run="r1", up_to=7, grace_s=0))
    await asyncio.sleep(0.1)
    assert (accounts[0].checkpoint.is_final, accounts[0].given_back) == (True, [0, 1, 2])
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert [account.outcomes[0] for account in accounts] == [0, 9, 9]
    # Requests in flight have the grace time.
    bench = build_bench()
    [account] = bench.take(build_lease(0, 100, name=build_lease_id("r1", 1)))
    await settle()
    bench.engine.fill()
    bench.runner.stop(Stop(run="r1", up_to=1, grace_s=7.5))
    await asyncio.sleep(0.1)
    assert (account.checkpoint.end, account.checkpoint.is_final) == (3, False)
    bench.engine.flights.pop()[0].answer(OK, 200, 1, 1)
    bench.engine.fill()
    assert bench.engine.in_flight == 2
    await asyncio.sleep(7.0)
    assert not account.checkpoint.is_final
    await asyncio.sleep(1.0)
    assert (account.checkpoint.is_final, account.given_back) == (True, [0, 1])
    assert account.outcomes[0] == 1
    # A later stop may shorten the grace time and not extend it.
    bench = build_bench()
    [account] = bench.take(build_lease(0, 100, name=build_lease_id("r1", 1)))
    await settle()
    bench.engine.fill()
    for grace_s in (3600.0, 3600.0, 1.0, 50.0):
        bench.runner.stop(Stop(run="r1", up_to=1, grace_s=grace_s))
    await asyncio.sleep(0.9)
    assert not account.checkpoint.is_final
    await asyncio.sleep(0.3)
    assert account.checkpoint.is_final


async def test_a_spec_that_cannot_be_carried_out_here_is_refused(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Each lease of the run is given back with the reason; the next run goes on."""
    bench.built.error = EngineError("cacert /ca.pem cannot be used")
    accounts = [bench.take(build_lease(start, start + 10))[0] for start in (0, 10, 20)]
    await asyncio.sleep(0.1)

    for account in accounts:
        assert account.checkpoint.is_final
        assert (account.checkpoint.done, account.checkpoint.end) == (0, 0)
        assert account.checkpoint.refusal == "cacert /ca.pem cannot be used"
    assert "cannot be carried out here: cacert /ca.pem cannot be used" in caplog.text
    [record] = [each for each in caplog.records if "carried out" in each.getMessage()]
    assert (record.__dict__["run"], record.__dict__["lease"]) == ("r1", build_lease(0, 10).id)
    bench.built.error = None
    [other] = bench.take(build_lease(0, 5, run="r2"), spec=OTHER_SPEC)
    await settle()
    await bench.engine.work()
    await asyncio.sleep(0.1)
    assert other.checkpoint.is_final


async def test_leases_that_cannot_be_read_are_refused_once(bench: Bench) -> None:
    """What is known of them is enough to say so; those for another process are its own matter."""
    [account] = [bench.book.open(msgspec.structs.replace(build_lease(0, 5, name="r1.1.aa"), ranges=[]))]
    head = LeaseBatchHead(run="r1", incarnation="b1", leases=[LeaseHead(id="r1.1.aa")])
    bench.runner.refuse(msgspec.structs.replace(head, incarnation="b0"), "too new")
    bench.runner.refuse(head, "too new")
    await asyncio.sleep(0.1)
    bench.runner.refuse(head, "too new")
    await asyncio.sleep(0.1)
    assert (account.checkpoint.refusal, account.checkpoint.is_final) == ("too new", True)
    assert len(bench.sent) == 1


async def test_a_lease_that_the_engine_has_spoilt_is_given_up(
    caplog: pytest.LogCaptureFixture, build_bench: Callable[[], Bench]
) -> None:
    """What nobody can account for any more is not told of, and nothing more of it is sent."""
    bench = build_bench()
    lease = build_lease(0, 100)
    bench.take(lease)
    await settle()
    bench.engine.fill()
    bench.engine.flights[0][0].execution.abandon(ArithmeticError("a fault of our own"))
    await asyncio.sleep(0.1)
    bench.engine.answer_all()
    bench.engine.fill()
    assert bench.engine.in_flight == 0
    assert (bench.runner.lease_ids, list_checkpoints(bench, lease.id)) == ([], [])
    assert "failed: ArithmeticError: a fault of our own" in caplog.text
    # A lease that the engine has spoilt is never given back as unbegun.
    bench = build_bench()
    lease = build_lease(0, 100)
    start_by = asyncio.get_running_loop().time() + 60
    bench.take(lease, start_by=start_by)
    await settle()
    bench.engine.fill()
    await asyncio.sleep(300.0)
    bench.engine.flights[0][0].execution.abandon(ArithmeticError("a fault of our own"))
    await settle()
    sent = len(list_checkpoints(bench, lease.id))
    bench.take(build_lease(100, 110))  # what can be forgotten is forgotten as others come
    bench.take(lease, start_by=start_by)
    bench.control(ends={lease.id: 0})
    await asyncio.sleep(1.0)
    assert lease.id not in bench.runner.lease_ids
    assert len(list_checkpoints(bench, lease.id)) == sent


async def test_closing_ends_every_lease(bench: Bench) -> None:
    """It ends those in flight, those that wait, and those that wait for another engine."""
    bench.take(build_lease(0, 10))
    bench.take(build_lease(10, 20))
    bench.take(build_lease(0, 10, run="r2"), spec=OTHER_SPEC)
    await settle()
    bench.engine.fill()

    await asyncio.wait_for(bench.close(), 1)

    assert bench.engine.is_closed
    assert [(each.taken, each.end) for each in bench.runner.build_progress().leases.values()] == [
        (3, 3), (0, 0), (0, 0)
    ]  # fmt: skip


async def test_a_worker_that_leaves_says_all_and_is_told_when_it_may(
    build_bench: Callable[[], Bench],
) -> None:
    """Also to a coordinator that has spoken for ten minutes and taken nothing in."""
    bench = build_bench()
    bench.is_confirming = False
    bench.take(build_lease(0, 100))
    await settle()
    bench.engine.fill()
    for _ in range(120):
        await asyncio.sleep(5.0)
        bench.runner.on_heard()
    bench.engine.answer_all()
    bench.runner.stop_all(1.0)
    await asyncio.sleep(1.1)
    assert bench.runner.has_sent_all
    assert bench.sent[-1].checkpoints[0].is_final
    # A worker that leaves is told when nothing is on its way.
    bench = build_bench()
    bench.runner.stop_all(1.0)
    for incarnation, may_leave in (("another", True), (bench.runner.incarnation, False)):
        bench.runner.control(Control(incarnation=incarnation, may_leave=may_leave))
    assert not bench.runner.may_leave
    bench.runner.control(Control(incarnation=bench.runner.incarnation, may_leave=True))
    bench.runner.control(Control(incarnation=bench.runner.incarnation))
    assert bench.runner.may_leave
    # A worker knows whether the broker has all.
    bench = build_bench()
    bench.is_confirming, bench.error = False, OSError("no broker")
    bench.take(build_lease(0, 3))
    await settle()
    await bench.engine.work()
    await asyncio.sleep(5.0)
    assert not bench.runner.has_sent_all
    bench.error = None
    await asyncio.sleep(5.0)
    assert bench.runner.has_sent_all
    assert bench.runner.lease_ids


async def test_progress_names_the_leases_in_hand(build_bench: Callable[[], Bench]) -> None:
    """It says how far each is, what is in flight, what is new, and which runs are known."""
    bench = build_bench()
    first, second = build_lease(0, 10), build_lease(10, 20)
    bench.take(first, second)
    await settle()
    bench.engine.fill()
    bench.engine.answer_all()
    bench.engine.fill()
    progress = bench.runner.build_progress()
    assert progress.find_fault() is None
    assert (progress.worker, progress.incarnation, progress.stopping) == ("w1", "b1", False)
    assert progress.leases == {
        first.id: LeaseProgress(6, 10, make_counts(3)), second.id: LeaseProgress(0, 10, build_no_counts())
    }  # fmt: skip
    assert progress.specs == ["r1"]
    assert list(progress.runs) == ["r1"]
    done = progress.runs["r1"]
    assert (done.in_flight, done.outcomes, done.bytes_received, done.sent) == (3, make_counts(3), 30, 6)
    assert progress.rss_mb > 10
    assert bench.runner.build_progress().runs["r1"].outcomes == build_no_counts()
    # Progress tells what the worker knows of the coordinators clock.
    bench = build_bench()
    progress = bench.runner.build_progress()
    assert (progress.coordinator_at, progress.clock_bound_s) == (None, None)
    notice = ClockNotice(kernel=fetch_kernel_id(), offset_ns=10**18)
    bench.runner.coordinator_clock.set_notice(notice)
    progress = bench.runner.build_progress()
    assert progress.coordinator_at == pytest.approx(10**9 + time.monotonic(), abs=60.0)
    assert progress.clock_bound_s == 0.0
    # Progress before anything. A worker that has just started speaks, too.
    bench = build_bench()
    progress = bench.runner.build_progress()
    assert progress.find_fault() is None
    assert (progress.leases, progress.specs, progress.runs) == ({}, [], {})


async def test_a_message_tells_how_fast_the_run_is(bench: Bench) -> None:
    """It says how much this process has taken of the run in all, leases that are over included."""
    bench.take(build_lease(0, 20))
    bench.take(build_lease(20, 1000))
    await settle()
    for _ in range(80):
        bench.engine.fill()
        await asyncio.sleep(0.05)
        bench.engine.answer_all()
    last = bench.sent[-1]
    assert last.run == "r1"
    assert last.taken == last.checkpoints[-1].done + 20
    assert last.rate_rps == pytest.approx(60.0, rel=0.05)


async def test_a_window_that_is_not_full_is_told_of(bench: Bench) -> None:
    """A limit that holds it back counts as well: there was something to send."""
    [account] = bench.take(build_lease(0, 1000, limit=400))
    await settle()
    for refresh in range(400):
        bench.engine.fill()
        while refresh >= 200 and len(bench.engine.flights) > 1:
            bench.engine.flights.pop()[0].answer(OK, 200, 1, 1)
        await asyncio.sleep(0.05)
        if bench.engine.flights:
            bench.engine.flights.pop(0)[0].answer(OK, 200, 1, 1)
    bench.control(ends={build_lease(0, 1000).id: 0})
    await asyncio.sleep(0.1)
    assert account.checkpoint.figures.watched_s == pytest.approx(20.0, abs=2.5)
    assert 0 < account.checkpoint.figures.underfilled_s < account.checkpoint.figures.watched_s


async def test_many_leases_in_hand_do_not_hold_the_loop_up(bench: Bench) -> None:
    """Hundreds of small ones are taken, finished and confirmed."""
    accounts = bench.take(*(build_lease(10 * n, 10 * n + 10) for n in range(300)))
    await settle()
    await bench.engine.work()
    await asyncio.sleep(1.0)
    assert all(account.checkpoint.is_final for account in accounts)
    assert bench.runner.lease_ids == []


async def test_a_worker_that_has_run_user_code_takes_nothing_of_another_run(
    build_bench: Callable[[], Bench],
) -> None:
    """It gives it back unbegun, and leaves; its own run goes on."""
    bench = build_bench()
    code = Spec(engine=Engine.PYTHON, concurrency=5)
    bench.take(build_lease(0, 3), spec=code)
    await settle()
    assert bench.runner.build_progress().code_run == "r1"
    bench.take(build_lease(3, 6), spec=None)
    await settle()
    assert bench.renewals == 0
    [other] = bench.take(build_lease(0, 10, "r2"))
    await asyncio.sleep(0.1)
    assert (bench.renewals, bench.runner.build_progress().code_run) == (1, "r1")
    assert other.checkpoint.is_final
    assert (other.checkpoint.done, other.checkpoint.end) == (0, 0)
    # A worker leaves when the run is over whose user code it has run.
    bench = build_bench()
    bench.runner.control(Control(incarnation="another", renew=True))
    bench.control(may_leave=True)
    assert bench.renewals == 0
    bench.control(renew=True)
    assert bench.renewals == 1

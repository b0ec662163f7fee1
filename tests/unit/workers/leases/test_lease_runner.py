import asyncio
from typing import Any

import pytest
from tests.kit.workers.engines_in_memory import (
    OTHER_SPEC,
    SPEC,
    BuiltEngines,
    begin,
    build_lease,
    receive,
    settle,
)

from oku_core.messaging.lease import find_fault
from oku_core.messaging.order import Stop
from oku_workers.leases.lease_runner import LeaseRunner


async def test_a_report_is_made_with_the_last_answer(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It is made at once, and not before."""
    task = begin(runner, build_lease(0, 2))
    await settle()
    built.engine.fill()
    await settle()
    assert not task.done()
    built.engine.answer_all()
    assert (await receive(task)).done == 2


async def test_a_doubled_lease_is_executed_once(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Its second message has no effect while it is under way, its report on the way included."""
    lease = build_lease(0, 5)
    task = begin(runner, lease)
    await settle()
    assert await runner.run(lease, "e2") is None
    await built.engine.work()
    await receive(task)
    assert await runner.run(lease, "e3") is None
    assert runner.lease_ids == [lease.id]
    runner.forget(lease.id)
    assert runner.lease_ids == []


@pytest.mark.parametrize("stop", [50, 49, 0])
async def test_a_lease_without_an_index_is_reported_at_once(
    runner: LeaseRunner, built: BuiltEngines, stop: int
) -> None:
    """It may be forged, and must not stay under way for ever."""
    report = await receive(begin(runner, build_lease(50, stop)))
    assert (report.start, report.done, sum(report.outcomes)) == (50, 50, 0)


async def test_a_stop_ends_the_leases_that_it_names(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It names them by run or one by one; others go on."""
    leases = [
        build_lease(0, 9),
        build_lease(9, 18),
        build_lease(18, 27, run="r2"),
        build_lease(27, 36, run="r3"),
    ]
    tasks = [begin(runner, lease) for lease in leases]
    await settle()
    built.engine.fill()

    runner.stop(Stop(run="r1", leases=[leases[3].id], grace_s=0))
    await settle()

    reports = [await receive(tasks[n]) for n in (0, 1, 3)]
    assert [(report.done, report.unfinished) for report in reports] == [(3, [0, 1, 2]), (9, []), (27, [])]
    await built.engine.work()
    assert (await receive(tasks[2])).covered == 9


async def test_an_old_stop_does_not_end_a_lease_that_was_cut_after_it(
    runner: LeaseRunner, built: BuiltEngines
) -> None:
    """Replaying the order of a pause after the run was resumed stops nothing."""
    before, after = build_lease(0, 9, name="r1.7.aa"), build_lease(9, 18, name="r1.8.bb")
    tasks = [begin(runner, lease) for lease in (before, after)]
    await settle()
    built.engine.fill()

    runner.stop(Stop(run="r1", up_to=7, grace_s=0))
    await settle()

    assert (await receive(tasks[0])).unfinished == [0, 1, 2]
    await built.engine.work()
    assert (await receive(tasks[1])).covered == 9


async def test_requests_in_flight_have_the_grace_time(
    runner: LeaseRunner, built: BuiltEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index is taken any more; what is not answered when it is over is cut off."""
    timers: list[tuple[float, Any, tuple[Any, ...]]] = []
    loop = asyncio.get_running_loop()
    task = begin(runner, build_lease(0, 100))
    await settle()
    built.engine.fill()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_later", lambda delay, call, *args: timers.append((delay, call, args)))
        runner.stop(Stop(run="r1", grace_s=7.5))

    built.engine.flights.pop()[0].answer(200, 1, 1, expected=True)
    built.engine.fill()
    assert built.engine.in_flight == 2
    assert [delay for delay, _, _ in timers] == [7.5]
    _, cut_off, arguments = timers[0]
    cut_off(*arguments)
    cut_off(*arguments)

    report = await receive(task)
    assert (report.done, report.unfinished, report.outcomes[0]) == (3, [0, 1], 1)
    assert find_fault(report, 0, 100) is None


async def test_a_runner_that_is_stopping_begins_nothing(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Every lease is ended, and those that come later are given back untouched, without an engine."""
    first = begin(runner, build_lease(0, 10))
    await settle()

    runner.stop_all(0)
    second = begin(runner, build_lease(10, 20, OTHER_SPEC))

    assert [(await receive(task)).covered for task in (first, second)] == [0, 0]
    assert runner.build_progress().stopping
    assert len(built.engines) == 1


async def test_a_lease_that_the_engine_has_spoilt_is_given_up(
    runner: LeaseRunner, built: BuiltEngines
) -> None:
    """What nobody can account for any more is not reported, and nothing more of it is sent."""
    task = begin(runner, build_lease(0, 100))
    await settle()
    built.engine.fill()

    built.engine.flights[0][0].abandon(ArithmeticError("a fault of our own"))

    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(task, 1)
    built.engine.answer_all()
    built.engine.fill()
    assert built.engine.in_flight == 0
    assert runner.lease_ids == []


async def test_closing_ends_every_lease(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It ends those in flight, those that wait, and those that wait for another engine."""
    runner.start()
    tasks = [
        begin(runner, build_lease(n, n + 10, spec)) for n, spec in ((0, SPEC), (10, SPEC), (20, OTHER_SPEC))
    ]
    await settle()
    built.engine.fill()

    await runner.close()

    assert [(await receive(task)).covered for task in tasks] == [0, 0, 0]
    assert built.engine.is_closed


async def test_progress_names_the_leases_under_way(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It has their outcomes so far, what is in flight, and what is new since the last time."""
    first, second = build_lease(0, 10), build_lease(10, 20)
    tasks = [begin(runner, first), begin(runner, second)]
    await settle()
    built.engine.fill()
    built.engine.answer_all()
    built.engine.fill()

    progress = runner.build_progress()

    assert progress.find_fault() is None
    assert (progress.worker, progress.incarnation, progress.stopping) == ("w1", "b1", False)
    assert progress.leases == {first.id: [3, 0, 0, 0, 0, 0], second.id: [0] * 6}
    assert (progress.in_flight, progress.outcomes, progress.bytes_received) == (3, [3, 0, 0, 0, 0, 0], 30)
    assert progress.rss_mb > 10
    assert runner.build_progress().outcomes == [0] * 6
    await runner.close()
    await asyncio.gather(*tasks)


async def test_progress_before_anything(runner: LeaseRunner) -> None:
    """A worker that has just started speaks, too."""
    progress = runner.build_progress()
    assert progress.find_fault() is None
    assert (progress.leases, progress.in_flight, progress.lag_s) == ({}, 0, 0.0)


async def test_a_refused_lease_fills_a_slot_until_the_worker_leaves(runner: LeaseRunner) -> None:
    """What arrives next is for other workers; a worker that is told to leave is not kept from it."""
    resting = asyncio.create_task(asyncio.to_thread(runner.fill_slot, "l1", 60.0))
    while not runner.refused:  # noqa: ASYNC110  # a thread does not call
        await asyncio.sleep(0)
    runner.stop_all(0.0)
    await asyncio.wait_for(resting, 5.0)
    assert runner.refused == set()

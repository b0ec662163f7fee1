import logging

import pytest
from tests.kit.workers.engines_in_memory import (
    OTHER_SPEC,
    SPEC,
    THIRD_SPEC,
    BuiltEngines,
    begin,
    build_lease,
    receive,
    settle,
)

from oku_workers.engines import window
from oku_workers.leases.lease_runner import LeaseRunner


async def test_leases_of_one_spec_share_their_engine(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Its connections stay open from lease to lease."""
    for start in (0, 10, 20):
        task = begin(runner, build_lease(start, start + 10))
        await settle()
        await built.engine.work()
        await receive(task)
    assert len(built.engines) == 1


async def test_another_spec_gets_an_engine_of_its_own(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It gets it when the leases of the one before are finished, and its engine is closed."""
    first, second = begin(runner, build_lease(0, 3)), begin(runner, build_lease(3, 6, OTHER_SPEC))
    await settle()
    assert [engine.spec for engine in built.engines] == [SPEC]

    await built.engine.work()
    assert [engine.spec for engine in built.engines] == [SPEC, OTHER_SPEC]
    await built.engine.work()

    assert [(await receive(task)).covered for task in (first, second)] == [3, 3]


async def test_specs_in_any_order_come_to_an_end(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Leases that wait for their engine do not wait for each other."""
    specs = [SPEC, OTHER_SPEC, THIRD_SPEC, OTHER_SPEC, SPEC]
    tasks = [begin(runner, build_lease(10 * n, 10 * n + 4, spec)) for n, spec in enumerate(specs)]
    for _ in specs:
        await settle()
        await built.engine.work()
    assert [(await receive(task)).covered for task in tasks] == [4] * 5


async def test_an_engine_that_cannot_be_built_leaves_no_lease_under_way(
    runner: LeaseRunner, built: BuiltEngines
) -> None:
    """The error is raised, the coordinator misses the lease, and the next one is run."""
    built.error = RuntimeError("no such engine")
    with pytest.raises(RuntimeError, match="no such engine"):
        await runner.run(build_lease(0, 5), "e1")
    assert runner.lease_ids == []

    built.error = None
    task = begin(runner, build_lease(0, 5))
    await settle()
    await built.engine.work()
    assert (await receive(task)).covered == 5


@pytest.mark.parametrize(("missing", "warnings"), [(1, 1), (0, 0), (-1000, 0)])
async def test_too_few_open_files_are_told(
    runner: LeaseRunner,
    built: BuiltEngines,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    missing: int,
    warnings: int,
) -> None:
    """The log and those who watch the run are told, for as long as it is so."""
    allowed = SPEC.concurrency + window.FILES_BESIDE - missing
    monkeypatch.setattr(window, "read_open_files", lambda: allowed)
    with caplog.at_level(logging.WARNING):
        task = begin(runner, build_lease(0, 1))
        await settle()
    assert len(caplog.messages) == len(runner.build_progress().troubles) == warnings
    await built.engine.work()
    await receive(task)
    if missing > 0:
        assert caplog.messages == [f"2 requests are in flight, not 3: only {allowed} open files are allowed"]

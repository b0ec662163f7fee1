import logging

import pytest
from tests.kit.workers.engines_in_memory import (
    OTHER_SPEC,
    SPEC,
    THIRD_SPEC,
    Bench,
    build_lease,
    settle,
)

from oku_workers.engines import window


async def test_leases_of_one_spec_share_their_engine(bench: Bench) -> None:
    """Its connections stay open from lease to lease."""
    for start in (0, 10, 20):
        bench.take(build_lease(start, start + 10))
        await settle()
        await bench.engine.work()
    assert len(bench.built.engines) == 1


async def test_another_spec_gets_an_engine_of_its_own(bench: Bench) -> None:
    """It gets it when the leases of the one before are finished, and its engine is closed."""
    bench.take(build_lease(0, 3))
    bench.take(build_lease(3, 6, run="r2"), spec=OTHER_SPEC)
    await settle()
    assert [engine.spec for engine in bench.built.engines] == [SPEC]

    await bench.engine.work()
    assert [engine.spec for engine in bench.built.engines] == [SPEC, OTHER_SPEC]
    await bench.engine.work()

    assert bench.built.engines[0].is_closed


async def test_specs_in_any_order_come_to_an_end(bench: Bench) -> None:
    """Leases that wait for their engine do not wait for each other."""
    specs = [SPEC, OTHER_SPEC, THIRD_SPEC, OTHER_SPEC, SPEC]
    for n, spec in enumerate(specs):
        bench.take(build_lease(10 * n, 10 * n + 4), spec=spec)
    for _ in specs:
        await settle()
        await bench.engine.work()
    assert [progress.taken for progress in bench.runner.build_progress().leases.values()] == [4] * 5


@pytest.mark.parametrize(("missing", "warnings"), [(1, 1), (0, 0), (-1000, 0)])
async def test_too_few_open_files_are_told(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    missing: int,
    warnings: int,
) -> None:
    """The log and those who watch the run are told, for as long as it is so."""
    allowed = SPEC.concurrency + window.FILES_BESIDE - missing
    monkeypatch.setattr(window, "read_open_files", lambda: allowed)
    with caplog.at_level(logging.WARNING):
        bench.take(build_lease(0, 1))
        await settle()
    assert len(caplog.messages) == len(bench.runner.build_progress().troubles) == warnings
    if missing > 0:
        assert caplog.messages == [f"2 requests are in flight, not 3: only {allowed} open files are allowed"]

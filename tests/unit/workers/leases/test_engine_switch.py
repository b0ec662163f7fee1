import asyncio
import logging
from collections import Counter
from typing import Any

import pytest
from tests.kit.workers.engines_in_memory import (
    OTHER_SPEC,
    SPEC,
    THIRD_SPEC,
    Bench,
    FakeEngine,
    build_lease,
    settle,
)
from tests.kit.workers.scheduled_bench import FakeTiming

from oku_core.messaging.hook import SetupData
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.values.rate import Rate
from oku_workers.engines import window
from oku_workers.engines.engine_context import EngineContext
from oku_workers.engines.host_load import HostLoad
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed import Feed
from oku_workers.leases.engine_switch import EngineSwitch, Pace


class EagerEngine(FakeEngine):
    """Takes whatever it may, as soon as it may."""

    def __init__(self, spec: Spec, feed: Any, *_: object) -> None:
        super().__init__(spec, feed)
        feed.on_due = self.fill

    def set_window(self, window: int) -> None:
        """Take as many as this."""
        super().set_window(window)
        self.fill()

    def count_phases(self) -> dict[str, int]:
        """How many requests were taken in each phase."""
        return Counter(tally.phase for tally, _ in self.flights)


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


@pytest.mark.parametrize(
    ("max_rate", "phases"),
    [(None, {"warm-up": 1000, "main": 8000}), (Rate("1000/s"), {"warm-up": 500, "main": 1000})],
)
async def test_what_an_opening_window_takes_belongs_to_what_holds_now(
    max_rate: Rate | None, phases: dict[str, int]
) -> None:
    """It is counted in the phase that begins, and a highest rate owes nothing from before the run began."""
    spec, time = Spec(duration_s=10.0, max_rate=max_rate), FakeTiming()
    engines: list[EagerEngine] = []

    def build(*args: Any) -> EagerEngine:
        engines.append(EagerEngine(*args))
        return engines[-1]

    def turn(until_s: float, window_size: int, phase: str) -> None:
        switch.set_pace(spec, Pace(window_size, phase, (0, 2)))
        time.turn(until_s)

    switch = EngineSwitch(Supervisor(), build=build, timing=time.timing)
    switch.set_pace(spec, Pace(0, "warm-up", (0, 2)))
    finished = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(switch.serve(Execution(build_lease(0, 10_000), spec, finished)))
    await settle()
    turn(1.0, 0, "warm-up")
    turn(2.0, 1000, "warm-up")
    turn(4.0, 9000, "main")
    assert engines[0].count_phases() == phases
    serving.cancel()


async def test_an_engine_has_what_one_setup_returned_and_another_setup_needs_another_engine() -> None:
    """Iterations of a run that was begun anew go by the newer one."""
    contexts: list[EngineContext] = []

    def build(spec: Spec, feed: Feed, _: Supervisor, context: EngineContext) -> FakeEngine:
        contexts.append(context)
        return FakeEngine(spec, feed)

    switch = EngineSwitch(Supervisor(), build=build)
    for attempt in (1, 1, 2):
        finished = asyncio.get_running_loop().create_future()
        execution = Execution(build_lease(0, 5), SPEC, finished)
        execution.setup = SetupData(attempt, f'"{attempt}"')
        serving = asyncio.ensure_future(switch.serve(execution))
        await settle()
        switch.withdraw(execution)
        await serving
    assert [context.setup_data for context in contexts] == ['"1"', '"2"']
    await switch.close()


async def test_processor_time_never_falls() -> None:
    """What the process of an engine has spent counts while it is closed, too, and what it spends then."""
    seen_s: list[float] = []
    load = HostLoad(cpu_s=1000.0)

    class Host(FakeEngine):
        def __init__(self, spec: Spec, feed: Feed, *_: object) -> None:
            super().__init__(spec, feed)
            self.host_load = load

        async def close(self) -> None:
            """It spends some more."""
            seen_s.append(switch.cpu_s)
            load.cpu_s += 1000.0
            await super().close()

    switch = EngineSwitch(Supervisor(), build=Host)
    execution = Execution(build_lease(0, 5), SPEC, asyncio.get_running_loop().create_future())
    serving = asyncio.ensure_future(switch.serve(execution))
    await settle()
    switch.withdraw(execution)
    await serving
    await switch.close()
    assert 1000 <= seen_s[0] < 2000 <= switch.cpu_s < 3000

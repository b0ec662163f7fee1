from typing import Any

import pytest
from tests.kit.workers.scheduled_bench import NS, FakeTimer, build_open_spec

from oku_core.messaging.order import ClockNotice
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.schedule.wave import ActivePeriod, Wave
from oku_core.spec.spec import Spec
from oku_workers.runs.engine_slot import EngineSettings, EngineSlot
from oku_workers.runs.run_pace import RunPace
from oku_workers.runs.run_pacer import RunPacer
from oku_workers.runs.run_sources import RunSources
from oku_workers.timing.coordinator_clock import ClockSample, CoordinatorClock
from oku_workers.timing.timing import Timing

_SPEC = Spec(requests=10**15, duration_s=10.0, concurrency=7)
_OPEN = build_open_spec("100/s", 10.0, concurrency=200, shares_concurrency=True)


class _Slot(EngineSlot):
    """Remembers the pace that was set last."""

    pace = RunPace(-1)

    def set_pace(self, _spec: Spec, pace: RunPace) -> None:
        self.pace = pace


class _Worker:
    """A worker on another machine than the coordinator, whose own clock is wrong."""

    def __init__(self, own: float) -> None:
        self.monotonic_ns = 5 * NS
        self.clock = CoordinatorClock("mine", lambda: self.monotonic_ns)
        timing = Timing(
            coordinator_clock=self.clock,
            monotonic_ns=lambda: self.monotonic_ns,
            build_timer=lambda _, callback: FakeTimer(callback),
        )
        self.engines = _Slot(Supervisor(), RunSources(), timing, EngineSettings())
        self.ended: list[str] = []
        self.pacer = RunPacer(self.engines, SteadyClock(lambda: own, lambda: own), self)

    def end_run(self, run: str) -> None:
        """Note it."""
        self.ended.append(run)

    def learn(self, unix_s: float) -> None:
        """The coordinator's clock shows this now."""
        self.clock.set_notice(ClockNotice(kernel="theirs", offset_ns=0, host="c", port=1))
        sample: Any = (self.monotonic_ns, round(unix_s * NS), self.monotonic_ns)
        self.clock.add_sample("theirs", ClockSample(*sample))


@pytest.mark.parametrize("own", [90.0, 101.0, 200.0])
async def test_a_worker_that_learns_the_time_follows_it_at_once(own: float) -> None:
    """It has gone by its own clock until then, which may be hours ahead or behind."""
    worker = _Worker(own)
    worker.pacer.start_run("r1", _SPEC, ActivePeriod(100.0, 0.0))
    assert worker.engines.pace.window == {90.0: 0, 101.0: 7, 200.0: -1}[own]
    worker.learn(99.0)
    worker.pacer.follow_clock()
    assert worker.engines.pace.window == 0
    assert not worker.pacer.is_over("r1")
    worker.monotonic_ns += 2 * NS
    worker.pacer.follow_clock()
    assert worker.engines.pace.window == 7


async def test_a_worker_follows_the_clock() -> None:
    """Its timer may come late."""
    worker = _Worker(0.0)
    worker.learn(105.0)
    worker.pacer.start_run("r1", _SPEC, ActivePeriod(100.0, 0.0))
    assert not worker.ended
    worker.monotonic_ns += 6 * NS
    worker.pacer.follow_clock()
    assert worker.ended == ["r1"]
    # A lease from before a pause that comes late changes nothing.
    worker = _Worker(0.0)
    worker.learn(150.0)
    worker.pacer.start_run("r1", _SPEC, ActivePeriod(149.0, 4.0))
    worker.pacer.start_run("r1", _SPEC, ActivePeriod(100.0, 0.0))
    assert not worker.pacer.is_over("r1")
    worker.pacer.start_run("r1", _SPEC, ActivePeriod(149.0, 8.0))
    worker.monotonic_ns += 2 * NS
    assert worker.pacer.is_over("r1")


async def test_what_is_dealt_again_of_an_older_wave_does_not_change_the_window() -> None:
    """It was cut for as many workers as there were then; the newest wave says how many share the window."""
    worker = _Worker(0.0)
    old, new = Wave(0, 20, 3, 0, (20,)), Wave(20, 40, 2, 1, (40,))
    worker.pacer.start_run("r1", _OPEN, None, [new])
    assert worker.engines.pace.window == 100
    worker.pacer.start_run("r1", _OPEN, None, [old])
    assert worker.engines.pace.window == 100
    worker.pacer.start_run("r1", _OPEN, None, [old, Wave(60, 80, 1, 2, (80,))])
    assert worker.engines.pace.window == 200
    worker.pacer.start_run("r2", _OPEN, None, [Wave(0, 20, 4, 0, (20,))])
    assert worker.engines.pace.window == 50

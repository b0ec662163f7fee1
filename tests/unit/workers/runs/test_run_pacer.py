from typing import Any

import pytest
from tests.kit.workers.scheduled_bench import NS, FakeTimer, build_open_spec

from oku_core.messaging.order import ClockNotice
from oku_core.messaging.share import Settled, Share
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.spec import Engine, Spec
from oku_workers.runs.engine_slot import EngineSettings, EngineSlot
from oku_workers.runs.run_pace import RunPace
from oku_workers.runs.run_pacer import RunPacer
from oku_workers.runs.run_sources import RunSources
from oku_workers.timing.coordinator_clock import ClockSample, CoordinatorClock
from oku_workers.timing.timing import Timing

_SPEC = Spec(requests=10**15, duration_s=10.0, concurrency=7)
_OPEN = build_open_spec("100/s", 10.0, concurrency=200)
_ALL = Share(run="r1", number=1, rank=0, of=1, is_alone=True)


class _Slot(EngineSlot):
    """Remembers the pace that was set last."""

    pace = RunPace(-1)
    keeps_window = True

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
    worker.pacer.share(_ALL)
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


async def test_a_worker_has_its_share_of_a_run() -> None:
    """None without it; while a run is divided anew, the smaller share; of another run nothing."""
    worker = _Worker(0.0)
    for spec in (_OPEN, Spec(requests=1000, concurrency=200)):
        run = f"r{spec.is_open}"
        worker.pacer.start_run(run, spec, None)
        assert worker.engines.pace.window == 0
        windows = []
        for number, rank, of, is_alone in [
            (1, 0, 2, True),
            (2, 1, 3, False),
            (2, 1, 3, True),
            (1, 0, 2, True),
        ]:
            worker.pacer.share(Share(run=run, number=number, rank=rank, of=of, is_alone=is_alone))
            windows.append(worker.engines.pace.window)
        assert windows == [100, 67, 67, 67]
        worker.pacer.share(Share(run="other", number=9, rank=0, of=9, is_alone=True))
        assert worker.engines.pace.window == 67


async def test_a_division_is_confirmed_when_no_more_is_in_flight_than_the_share() -> None:
    """At once if others wait for it, or with the next progress."""
    worker = _Worker(0.0)
    worker.pacer.start_run("r1", _OPEN, None)
    worker.pacer.share(Share(run="r1", number=1, rank=0, of=1, is_alone=True))
    assert (worker.pacer.settle(), worker.pacer.settled) == (False, [Settled("r1", 1)])
    worker.engines.keeps_window = False
    worker.pacer.share(Share(run="r1", number=2, rank=0, of=2, is_alone=False))
    assert (worker.pacer.settle(), worker.pacer.settled) == (False, [Settled("r1", 1)])
    worker.engines.keeps_window = True
    assert (worker.pacer.settle(), worker.pacer.settled) == (True, [Settled("r1", 2)])
    assert not worker.pacer.settle()


async def test_connections_are_shared_out_as_requests_are() -> None:
    """With seven connections, three workers have three, two and two, and the requests of those."""
    spec = Spec(requests=1000, concurrency=70, connections=7, engine=Engine.NGHTTP2, http2=True)
    paces = []
    for rank in range(3):
        worker = _Worker(0.0)
        worker.pacer.start_run("r1", spec, None)
        worker.pacer.share(Share(run="r1", number=1, rank=rank, of=3, is_alone=True))
        paces.append((worker.engines.pace.window, worker.engines.pace.connections))
    assert paces == [(30, 3), (20, 2), (20, 2)]

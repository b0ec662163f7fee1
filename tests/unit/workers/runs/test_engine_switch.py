import asyncio
import dataclasses
import hashlib
import logging
import math
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.kit.workers.engines_in_memory import (
    OTHER_SPEC,
    SPEC,
    THIRD_SPEC,
    Bench,
    BuiltEngines,
    FakeEngine,
    build_lease,
    build_switch,
    call_here,
    settle,
)
from tests.kit.workers.scheduled_bench import FakeTiming

from oku_core.messaging.hook import SetupData
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.quantity import Rate
from oku_workers.engines.contract import engine_protocol
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError, HostLoad
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed
from oku_workers.files.file_cache import FileCache, HeldFile
from oku_workers.files.run_files import LINGER_S, RunFiles
from oku_workers.runs.run_pace import RunPace

BODY_BYTES = b"what is sent"
BODY = FileRef.build(hashlib.sha256(BODY_BYTES).hexdigest(), len(BODY_BYTES), "body.txt")
WITH_BODY = msgspec.structs.replace(SPEC, method="POST", body=BODY)


class Listener:
    """Counts what a switch tells it."""

    def __init__(self) -> None:
        self.kept = self.loaded = 0

    def on_kept(self) -> None:
        """Count it."""
        self.kept += 1

    def on_loaded(self) -> None:
        """Count it."""
        self.loaded += 1

    def request_limits(self) -> None:
        """Nobody could allow more."""

    def find_reserve(self) -> float:
        """It is not known."""
        return math.inf


class EagerEngine(FakeEngine):
    """Takes whatever it may, as soon as it may."""

    def __init__(self, spec: Spec, feed: Any, *_: object) -> None:
        super().__init__(spec, feed)
        feed.attach(self)

    def has_room(self) -> bool:
        """Whether the window is not full."""
        return len(self.flights) < self.window

    def take_due(self) -> bool:
        """Take it at once."""
        self.fill()
        return True

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
    allowed = SPEC.concurrency + engine_protocol.FILES_BESIDE - missing
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: allowed)
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
        switch.slot.set_pace(spec, RunPace(window_size, phase, (0, 2)))
        time.turn(until_s)

    switch = build_switch(build, timing=time.timing)
    switch.slot.set_pace(spec, RunPace(0, "warm-up", (0, 2)))
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

    switch = build_switch(build)
    for attempt in (1, 1, 2):
        finished = asyncio.get_running_loop().create_future()
        execution = Execution(build_lease(0, 5), SPEC, finished)
        execution.setup = SetupData(attempt, f'"{attempt}"')
        serving = asyncio.ensure_future(switch.serve(execution))
        await settle()
        switch.drain(execution)
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
            seen_s.append(switch.slot.cpu_s)
            load.cpu_s += 1000.0
            await super().close()

    switch = build_switch(Host)
    execution = Execution(build_lease(0, 5), SPEC, asyncio.get_running_loop().create_future())
    serving = asyncio.ensure_future(switch.serve(execution))
    await settle()
    switch.drain(execution)
    await serving
    await switch.close()
    assert 1000 <= seen_s[0] < 2000 <= switch.slot.cpu_s < 3000


class CountingEngine(FakeEngine):
    """Notes what is done with it."""

    is_started = False

    def __init__(self, spec: Spec, feed: Feed, *_: object) -> None:
        super().__init__(spec, feed)
        self.window = 0

    async def open(self) -> None:
        """Fail if the code does."""
        if self.spec == BROKEN:
            raise EngineError("it cannot be loaded")

    def start(self) -> None:
        """Note it."""
        self.is_started = True


CODE = Spec(engine=Engine.PYTHON, concurrency=7)
BROKEN = Spec(engine=Engine.PYTHON, concurrency=8)


class AheadBench:
    """A switch whose engines the test sees."""

    def __init__(self, run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] = call_here) -> None:
        self.engines: list[CountingEngine] = []
        self.switch = build_switch(self._build, run_blocking=run_blocking)

    def _build(self, *arguments: Any) -> CountingEngine:
        self.engines.append(CountingEngine(*arguments))
        return self.engines[-1]

    async def load(self, run: str = "r1", spec: Spec = CODE, attempt: int = 0) -> None:
        """The coordinator says what to load."""
        self.switch.load_ahead(run, spec, SetupData(attempt))
        await settle()

    async def serve(self, spec: Spec = CODE, attempt: int = 0) -> tuple[Execution, asyncio.Task[None]]:
        """A lease comes."""
        execution = Execution(build_lease(0, 5), spec, asyncio.get_running_loop().create_future())
        execution.setup = SetupData(attempt)
        serving = asyncio.ensure_future(self.switch.serve(execution))
        await settle()
        return execution, serving

    async def end(self, execution: Execution, serving: asyncio.Task[None]) -> None:
        """The lease is over."""
        self.switch.drain(execution)
        await serving


async def test_user_code_is_loaded_before_the_first_lease_and_begins_with_it() -> None:
    """Until then there are no users, at whatever pace the run is to be carried out."""
    bench = AheadBench()
    listener = Listener()
    bench.switch.attach(listener)
    await bench.load()
    await bench.load()
    bench.switch.slot.set_pace(CODE, RunPace(3))
    assert (listener.loaded, bench.switch.loaded) == (1, "r1")
    assert [(engine.window, engine.is_started) for engine in bench.engines] == [(0, False)]
    await bench.end(*await bench.serve())
    assert [(engine.window, engine.is_started) for engine in bench.engines] == [(3, True)]
    await bench.switch.close()


async def test_user_code_is_loaded_anew_for_another_setup_or_run() -> None:
    """Not while a lease of another one is under way; it is told again."""
    bench = AheadBench()
    await bench.load(attempt=1)
    lease = await bench.serve(attempt=1)
    await bench.load(attempt=2)
    assert bench.switch.loaded == "r1#1"
    await bench.end(*lease)
    await bench.load(attempt=2)
    await bench.load(run="r2")
    assert bench.switch.loaded == "r2"
    assert [engine.is_closed for engine in bench.engines] == [True, True, False]
    await bench.switch.close()


async def test_a_process_has_run_user_code_from_when_its_engine_is_made() -> None:
    """Also if it cannot be loaded: some of it may have run by then. Other engines run none."""
    bench = AheadBench()
    await bench.end(*await bench.serve(Spec(concurrency=7)))
    assert bench.switch.slot.code_run == ""
    await bench.load(run="r2", spec=BROKEN)
    assert bench.switch.slot.code_run == "r2"
    assert (bench.switch.is_fresh_for("r2"), bench.switch.is_fresh_for("r1")) == (True, False)
    await bench.switch.close()


async def test_user_code_that_cannot_be_loaded_is_refused_with_its_first_lease() -> None:
    """The run need not wait for it: it is dealt with."""
    bench = AheadBench()
    await bench.load(spec=BROKEN)
    assert bench.switch.loaded == "r1"
    with pytest.raises(EngineError, match="it cannot be loaded"):
        await (await bench.serve(BROKEN))[1]
    await bench.switch.close()


async def test_patterns_are_compiled_elsewhere_before_their_engine_is_made() -> None:
    """Compiling may take seconds. A pattern that RE2 does not support is refused with the lease."""
    made: list[int] = []

    async def call_elsewhere(function: Callable[[], Any]) -> Any:
        made.append(len(bench.engines))
        return function()

    bench = AheadBench(call_elsewhere)
    await bench.end(*await bench.serve(SPEC))
    assert made == []
    await bench.end(*await bench.serve(replace(SPEC, expect_match=("a+",))))
    assert made == [1]
    with pytest.raises(EngineError, match=r"^\( is not a regular expression of RE2: missing \): \($"):
        await (await bench.serve(replace(SPEC, expect_match=("(",))))[1]
    await bench.switch.close()


async def test_what_a_pattern_has_cost_counts_for_one_run_alone() -> None:
    """The engine of another run begins anew, even if the spec is the same."""
    bench = AheadBench()
    for spec, engines in ((SPEC, 1), (replace(SPEC, expect_match=("a+",)), 3)):
        for run in ("r1", "r2"):
            execution = Execution(build_lease(0, 5, run), spec, asyncio.get_running_loop().create_future())
            serving = asyncio.ensure_future(bench.switch.serve(execution))
            await settle()
            await bench.end(execution, serving)
        assert len(bench.engines) == engines
    await bench.switch.close()


class FarewellEngine(FakeEngine):
    """Runs users that say goodbye when they are asked to, which takes until the test says so."""

    def __init__(self, spec: Spec, feed: Feed, *_: object) -> None:
        super().__init__(spec, feed)
        self.has_farewell = True
        self.may_end = asyncio.Event()

    async def run_farewell(self, execution: Execution) -> None:
        """Take as long as the test says."""
        await super().run_farewell(execution)
        await self.may_end.wait()


class Leaving:
    """A switch with such an engine, and leases of one request each."""

    def __init__(self) -> None:
        self.listener = Listener()
        self.engines: list[FarewellEngine] = []
        self.switch = build_switch(self._build)
        self.switch.attach(self.listener)
        self.switch.slot.set_pace(SPEC, RunPace(SPEC.concurrency))

    @property
    def engine(self) -> FarewellEngine:
        """The engine at work."""
        return self.engines[-1]

    async def begin(self, place: int) -> Execution:
        """Begin with a lease."""
        finished = asyncio.get_running_loop().create_future()
        execution = Execution(build_lease(place, place + 1), SPEC, finished)
        self._serving = asyncio.ensure_future(self.switch.serve(execution))
        await settle()
        return execution

    async def carry_out(self) -> None:
        """Have all requests answered that may be taken."""
        await self.engine.work()
        await settle()

    def _build(self, *arguments: Any) -> FarewellEngine:
        self.engines.append(FarewellEngine(*arguments))
        return self.engines[-1]


async def test_the_last_lease_is_kept_open_until_users_have_stopped() -> None:
    """Whether it is the last is for the coordinator to say, which hears of it by a checkpoint."""
    leaving = Leaving()
    first = await leaving.begin(0)
    second = await leaving.begin(1)
    await leaving.carry_out()
    assert (first.finished.done(), second.finished.done(), leaving.listener.kept) == (True, False, 1)
    assert leaving.engine.farewells == []
    leaving.switch.end_kept(second)
    leaving.switch.end_kept(second)
    await settle()
    assert (leaving.engine.farewells, second.finished.done()) == ([second], False)
    leaving.engine.may_end.set()
    await settle()
    assert second.finished.done()
    await leaving.switch.close()


async def test_a_lease_that_was_not_the_last_is_finished_when_the_next_one_comes() -> None:
    """No user has to stop for that; a user that is stopping already ends what was kept open."""
    leaving = Leaving()
    first = await leaving.begin(0)
    await leaving.carry_out()
    second = await leaving.begin(1)
    assert (first.finished.done(), leaving.engine.farewells) == (True, [])
    await leaving.carry_out()
    leaving.switch.end_kept(second)
    await settle()
    third = await leaving.begin(2)
    assert not second.finished.done()
    leaving.engine.may_end.set()
    await settle()
    assert (second.finished.done(), third.finished.done()) == (True, False)
    await leaving.carry_out()
    assert (leaving.listener.kept, third.is_kept) == (3, True)
    await leaving.switch.close()


async def test_users_stop_when_a_run_is_called_back() -> None:
    """At a pause or the end of a time: whether its last request has ended by then or not."""
    leaving = Leaving()
    kept = await leaving.begin(0)
    await leaving.carry_out()
    leaving.switch.drain(kept)
    leaving.engine.may_end.set()
    await settle()
    assert (kept.finished.done(), leaving.engine.farewells) == (True, [kept])
    under_way = await leaving.begin(1)
    leaving.engine.fill()
    leaving.switch.drain(under_way)
    leaving.engine.answer_all()
    await settle()
    assert (under_way.finished.done(), leaving.engine.farewells) == (True, [kept, under_way])
    await leaving.switch.close()


async def test_what_is_cut_off_waits_for_no_user() -> None:
    """The time in which requests may finish is over, or there is none."""
    leaving = Leaving()
    kept = await leaving.begin(0)
    await leaving.carry_out()
    leaving.switch.drain(kept)
    await settle()
    assert not kept.finished.done()
    leaving.switch.cancel(kept)
    assert kept.finished.done()
    await leaving.switch.close()


class CleanedFiles(RunFiles):
    """Somebody removes, or changes, what has come; so often."""

    def __init__(self, folder: Path, times: int, damage: Callable[[Path], object]) -> None:
        cache = FileCache(folder / "cache", 1000)
        super().__init__(FilledFetcher(cache), cache)  # type: ignore[arg-type]
        self._left, self._damage = times, damage

    async def provide(self, files: Iterable[FileRef], user: Hashable) -> None:
        """Have the files."""
        await super().provide(files, user)
        if self._left:
            self._left -= 1
            self._damage(self.path_of(BODY.digest))


class FilledFetcher:
    """Has the file."""

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache
        self.tickets: dict[str, str] = {}

    async def fetch(self, _: FileRef) -> HeldFile:
        """Have it."""
        if held := self._cache.hold(BODY):
            return held
        partial = self._cache.open_partial(BODY)
        assert partial is not None
        partial.append(BODY_BYTES)
        return partial.finish()


def call_at_once(
    loop: asyncio.AbstractEventLoop, _: object, function: Callable[..., Any], *arguments: object
) -> asyncio.Future[Any]:
    """Stands for the threads of a loop that has none."""
    future = loop.create_future()
    future.set_result(function(*arguments))
    return future


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 2)], ids=["removed", "cut"])
async def test_what_an_engine_has_read_of_files_is_right(
    tmp_path: Path, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are fetched again if somebody meddles between their coming and their use, but not for ever."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "run_in_executor", partial(call_at_once, loop))
    for times, reasons in ((0, []), (2, []), (9, ["keeps removing or changing the files|No such file"])):
        built: list[Spec] = []

        def build(spec: Spec, feed: Any, *_: object, built: list[Spec] = built) -> FakeEngine:
            built.append(spec)
            return FakeEngine(spec, feed)

        files = CleanedFiles(tmp_path / str(times), times, damage)
        engines = build_switch(build, files)
        execution = Execution(build_lease(0, 3), WITH_BODY, asyncio.get_running_loop().create_future())
        serving = asyncio.ensure_future(engines.serve(execution))
        for _ in range(10):
            await settle()
        if reasons:
            with pytest.raises(EngineError, match=reasons[0]):
                await serving
        else:
            assert built[-1].body == BODY_BYTES.decode()
            engines.drain(execution)
            await serving
        await engines.close()
        await files.close()


async def test_an_engine_that_opens_its_files_again_has_them_although_its_lease_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are fetched if somebody has removed them, and go once nobody has used them for a while."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "run_in_executor", partial(call_at_once, loop))
    built = BuiltEngines()
    files = CleanedFiles(tmp_path, 0, Path.unlink)
    engines = build_switch(built.build, files)
    execution = Execution(build_lease(0, 3), WITH_BODY, loop.create_future())
    serving = asyncio.ensure_future(engines.serve(execution))
    await settle()
    engines.drain(execution)
    await serving

    path = files.path_of(BODY.digest)
    path.unlink()
    assert built.engine.context is not None
    await built.engine.context.fetch_files()
    assert path.read_bytes() == BODY_BYTES
    await asyncio.sleep(LINGER_S + 1.0)
    assert not path.exists()
    await engines.close()
    await files.close()


async def test_bodies_that_do_not_fit_into_memory_are_refused(bench: Bench) -> None:
    """The coordinator did not know this worker yet; the lease is given back with the reason."""
    slot = bench.engines.slot
    slot.settings = dataclasses.replace(slot.settings, memory_bytes=100_000)
    spec = Spec(urls=SPEC.urls, body="{i}" + "x" * 1000, concurrency=100)
    [account] = bench.take(build_lease(0, 1000), spec=spec)
    await asyncio.sleep(0.1)
    assert account.checkpoint.refusal.startswith("body: each request has its own body, and 100 in flight")
    assert (account.checkpoint.done, bench.built.engines) == (0, [])
    assert bench.runner.build_progress().memory_bytes == 100_000

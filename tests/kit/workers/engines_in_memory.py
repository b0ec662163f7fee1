"""Lease runners with engines in memory, which take indices and answer them when the test says so."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.kit.workers.checkpoint_book import CheckpointBook, LeaseAccount
from tests.kit.workers.whole_share import build_whole_share

from oku_core.accounting.outcome import OK
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.worker_parts import WorkerParts
from oku_workers.meters.saturation import SaturationMeter
from oku_workers.meters.worker_meter import ProcessGauges, WorkerMeter
from oku_workers.runs.engine_slot import EngineSettings
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.runs.run_sources import RunSources
from oku_workers.settings import WorkerIdentity
from oku_workers.timing.timing import Timing

if TYPE_CHECKING:
    from oku_workers.engines.contract.engine_protocol import HostLoad
    from oku_workers.executions.tally import Tally

WORKER = WorkerIdentity("w1", "b1")
SPEC = Spec(urls=(Url("http://127.0.0.1/"),), concurrency=3)
OTHER_SPEC = Spec(urls=(Url("http://127.0.0.1/other"),), concurrency=3)
THIRD_SPEC = Spec(urls=(Url("http://127.0.0.1/third"),), concurrency=3)
NEVER = 1e12


async def call_here(function: Callable[[], Any]) -> Any:
    """Stands for a thread."""
    return function()


def build_switch(
    build: Callable[..., Any],
    files: Any = None,
    *,
    timing: Timing | None = None,
    run_blocking: Any = call_here,
    supervisor: Supervisor | None = None,
) -> EngineSwitch:
    """A switch of engines that a test makes."""
    sources = RunSources(files=files, run_blocking=run_blocking)
    return EngineSwitch(supervisor or Supervisor(), sources, timing, EngineSettings(build=build))


class FakeEngine:
    """An engine in memory: it takes when it is told to, and is answered by the test."""

    def __init__(self, spec: Spec, feed: Feed, context: EngineContext | None = None) -> None:
        self.spec = spec
        self.context = context
        self.window = spec.concurrency
        self.flights: list[tuple[Tally, int]] = []
        self.is_closed = False
        self.fault = ""
        self.host_load: HostLoad | None = None
        self.has_farewell = False
        self.farewells: list[Execution] = []
        self._feed = feed

    @property
    def in_flight(self) -> int:
        """How many were taken and have not ended."""
        return len(self.flights)

    async def open(self) -> None:
        """There is nothing to wait for."""

    async def run_farewell(self, execution: Execution) -> None:
        """Note in which execution the last requests count."""
        self.farewells.append(execution)

    def start(self) -> None:
        """Begin; there is nothing to do."""

    def flush_counts(self) -> None:
        """Nothing waits."""

    @property
    def keeps_window(self) -> bool:
        """Whether no more than the window allows are in flight."""
        return self.in_flight <= self.window

    def group_in_flight(self) -> dict[Execution, list[int]]:
        """What is in flight of each lease."""
        groups: dict[Execution, list[int]] = {}
        for tally, coordinate in self.flights:
            groups.setdefault(tally.execution, []).append(coordinate)
        return groups

    def set_window(self, window: int) -> None:
        """Take as many as this."""
        self.window = window

    def cancel(self, execution: Execution) -> None:
        """Give back what is in flight of a lease."""
        for tally, coordinate in self.flights:
            if tally.execution is execution:
                execution.give_back(coordinate)
        self.flights = [flight for flight in self.flights if flight[0].execution is not execution]

    def sweep(self) -> None:
        """End what takes too long; no time goes by here."""

    async def close(self) -> None:
        """Give back what is in flight."""
        self.is_closed = True
        for execution in {tally.execution for tally, _ in self.flights}:
            self.cancel(execution)

    def fill(self) -> None:
        """Take as many requests as the window allows."""
        while len(self.flights) < self.window and self._feed.current is not None:
            tally, coordinate, _, _ = self._feed.pop()
            self.flights.append((tally, coordinate))

    def answer_all(self) -> None:
        """Answer what is in flight."""
        flights, self.flights = self.flights, []
        for tally, _ in flights:
            tally.answer(OK, 200, 1500, 10)

    async def work(self) -> None:
        """Take and answer until there is nothing left to take."""
        await settle()
        while self._feed.current is not None:
            self.fill()
            self.answer_all()
        await settle()


class BuiltEngines:
    """The engines that a lease runner has had."""

    def __init__(self) -> None:
        self.engines: list[FakeEngine] = []
        self.error: Exception | None = None

    def build(self, spec: Spec, feed: Feed, _: Supervisor, context: EngineContext) -> FakeEngine:
        """Stands for `build_engine`."""
        if self.error is not None:
            raise self.error
        assert all(engine.is_closed for engine in self.engines)
        self.engines.append(FakeEngine(spec, feed, context))
        return self.engines[-1]

    @property
    def engine(self) -> FakeEngine:
        """The last one."""
        return self.engines[-1]


class Bench:
    """A lease runner that has begun, with its engines and its coordinator in memory.

    Args:
        meter: of the runner.
        files: of runs; none can be fetched without.

    Attributes:
        engines: what it feeds.
        renewals: how often the runner has asked for a fresh process.
        sent: what it has sent; each message is a true account of its leases.
        error: what sending fails with.
    """

    def __init__(self, meter: WorkerMeter | None = None, files: Any = None) -> None:
        self.built = BuiltEngines()
        self.book = CheckpointBook()
        self.error: Exception | None = None
        self.is_confirming = True
        supervisor = Supervisor()
        self.engines = build_switch(self.built.build, files, supervisor=supervisor)
        self.renewals = 0
        parts = WorkerParts(worker=WORKER, supervisor=supervisor, sink=self, process=self)
        self.runner = LeaseRunner(parts, self.engines, meter)
        self.runner.start()

    @property
    def sent(self) -> list[CheckpointBatch]:
        """All messages."""
        return self.book.batches

    @property
    def engine(self) -> FakeEngine:
        """The engine at work."""
        return self.built.engine

    def take(self, *leases: Lease, spec: Spec | None = SPEC, **changes: Any) -> list[LeaseAccount]:
        """Leases of one run arrive; their accounts."""
        fields: dict[str, Any] = {
            "incarnation": WORKER.incarnation,
            "start_by": NEVER,
            "share": build_whole_share(leases[0].run),
        }
        batch = LeaseBatch(run=leases[0].run, leases=list(leases), spec=spec, **(fields | changes))
        accounts = [self.book.open(lease) for lease in leases]
        self.runner.accept(batch)
        return accounts

    def control(self, **what: Any) -> None:
        """The coordinator has decided."""
        self.runner.control(Control(incarnation=WORKER.incarnation, **what))

    def confirm_all(self) -> None:
        """Confirm all that was sent."""
        self.control(
            confirmed={
                checkpoint.lease: checkpoint.sequence
                for batch in self.sent
                for checkpoint in batch.checkpoints
            }
        )

    async def close(self) -> None:
        """End everything."""
        await self.runner.close()

    def renew(self) -> None:
        """Count it."""
        self.renewals += 1

    def send_progress(self) -> None:
        """The test takes it when it likes."""

    async def send(self, batch: CheckpointBatch) -> None:
        """Take what the runner sends, and confirm it."""
        if self.error is not None:
            raise self.error
        confirmed = self.book.take(batch)
        if self.is_confirming:
            self.control(confirmed=confirmed)


def build_simulated_meter() -> WorkerMeter:
    """A meter of a worker that is never busy, all of whose clocks are that of the running event loop."""
    clock = asyncio.get_running_loop().time
    gauges = ProcessGauges(monotonic=clock, cpu_s=lambda: 0.0)
    return WorkerMeter(SteadyClock(clock, clock), gauges, SaturationMeter(lambda: 0.0, clock))


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(20):
        await asyncio.sleep(0)


def build_lease(start: int, stop: int, run: str = "r1", name: str = "", limit: int | None = None) -> Lease:
    """A lease that is called after its range, unless told otherwise, and may be taken as a whole."""
    return Lease(
        id=name or f"{run}.{start:09d}.{stop}",
        run=run,
        ranges=[(start, stop)],
        limit=stop - start if limit is None else limit,
    )

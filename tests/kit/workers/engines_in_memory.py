"""Lease runners with engines in memory, which take indices and answer them when the test says so."""

import asyncio

from oku_workers.leases.reports import WorkerIdentity

from oku_core.messaging.lease import Lease, Report
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed import Feed
from oku_workers.leases.engine_switch import EngineSwitch
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.worker_meter import WorkerMeter

WORKER = WorkerIdentity("w1", "b1")
SPEC = Spec(urls=(Url("http://127.0.0.1/"),), concurrency=3)
OTHER_SPEC = Spec(urls=(Url("http://127.0.0.1/other"),), concurrency=3)
THIRD_SPEC = Spec(urls=(Url("http://127.0.0.1/third"),), concurrency=3)


class FakeEngine:
    """An engine in memory: it takes when it is told to, and is answered by the test."""

    def __init__(self, spec: Spec, feed: Feed) -> None:
        self.spec = spec
        self.flights: list[tuple[Execution, int]] = []
        self.is_closed = False
        self._feed = feed

    @property
    def in_flight(self) -> int:
        """How many were taken and have not ended."""
        return len(self.flights)

    def start(self) -> None:
        """Begin; there is nothing to do."""

    def cut_off(self, execution: Execution) -> None:
        """Give back what is in flight of a lease."""
        for other, index in self.flights:
            if other is execution:
                execution.give_back(index)
        self.flights = [flight for flight in self.flights if flight[0] is not execution]

    def sweep(self) -> None:
        """End what takes too long; no time goes by here."""

    async def close(self) -> None:
        """Give back what is in flight."""
        self.is_closed = True
        for execution in {execution for execution, _ in self.flights}:
            self.cut_off(execution)

    def fill(self) -> None:
        """Take as many indices as the spec allows."""
        while len(self.flights) < self.spec.concurrency and (execution := self._feed.current) is not None:
            self.flights.append((execution, self._feed.take(execution)))

    def answer_all(self) -> None:
        """Answer what is in flight."""
        flights, self.flights = self.flights, []
        for execution, _ in flights:
            execution.answer(200, 1500, 10, expected=True)

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

    def build(self, spec: Spec, feed: Feed, *_: object) -> FakeEngine:
        """Stands for `build_engine`."""
        if self.error is not None:
            raise self.error
        assert all(engine.is_closed for engine in self.engines)
        self.engines.append(FakeEngine(spec, feed))
        return self.engines[-1]

    @property
    def engine(self) -> FakeEngine:
        """The last one."""
        return self.engines[-1]


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(20):
        await asyncio.sleep(0)


def build_runner(built: BuiltEngines, meter: WorkerMeter | None = None) -> LeaseRunner:
    """A lease runner that has just begun."""
    supervisor = Supervisor()
    return LeaseRunner(WORKER, supervisor, EngineSwitch(supervisor, build=built.build), meter)


def build_lease(start: int, stop: int, spec: Spec = SPEC, run: str = "r1", name: str = "") -> Lease:
    """A lease that is called after its range, unless told otherwise."""
    return Lease(id=name or f"{run}:{start}-{stop}", run=run, start=start, stop=stop, start_by=0.0, spec=spec)


def begin(runner: LeaseRunner, lease: Lease, execution_id: str = "e1") -> asyncio.Task[Report | None]:
    """Begin with a lease."""
    return asyncio.ensure_future(runner.run(lease, execution_id))


async def receive(task: asyncio.Task[Report | None]) -> Report:
    """The report of a lease, which must be there without any more time going by."""
    report = await asyncio.wait_for(task, 1)
    assert report is not None
    return report

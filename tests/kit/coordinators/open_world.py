"""An open run with a real ledger, and dealt as a coordinator does, and workers that do at once what is due.

The clock stands still between steps; Unix time and the monotonic clock are the same.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.parts import build_open_part
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.active_run import ActiveRuns
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.lease_table import fetch_fleet
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.ledger.tables.schedule_table import fetch_period
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, LeaseFigures
from oku_core.messaging.lease import Lease
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.schedule.lane import Lane
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load import build_schedule
from oku_core.spec.parser import Source, parse_spec

RUN = "r1"
URL = "http://127.0.0.1:1/"
MOMENT_S = 1e-6
"""Times are added up in floating point."""


@dataclass
class HeldLease:
    """A lease as its worker has it.

    Attributes:
        lease: the lease.
        dues: the index of each of its requests, and when it is due in Unix time.
        done: how many of them it has sent.
        sequence: that of its last checkpoint.
    """

    lease: Lease
    dues: list[tuple[int, float]]
    done: int = 0
    sequence: int = 0


@dataclass
class OpenWorker:
    """A worker.

    Attributes:
        name: its name.
        leases: those that it has, by their ids.
        is_alive: whether it speaks and works.
        clock_bound_s: how well it knows the coordinator's clock; None if it does not.
    """

    name: str
    leases: dict[str, HeldLease] = field(default_factory=dict)
    is_alive: bool = True
    clock_bound_s: float | None = 0.0

    @property
    def incarnation(self) -> str:
        """The id of its process."""
        return f"b{self.name}"


class OpenWorld:
    """A run and its workers.

    Args:
        ledger: where the run is kept.
        spec: the spec of the run, as a user writes it.
    """

    def __init__(self, ledger: Ledger, **spec: Any) -> None:
        self.ledger = ledger
        self.now = 1000.0
        self.broker = BrokerTwin()
        self.roster = Roster(5.0)
        self.active_runs = self._build_active_runs()
        self.spec = parse_spec(Source(None, {"url": URL, **spec}))
        self.schedule = build_schedule(self.spec)
        self.workers: dict[str, OpenWorker] = {}
        self.sent: list[tuple[int, float, float]] = []
        """The index of each request that was sent, when it was due, and when it was sent."""
        self._read = 0
        change(ledger, create_run, RUN, self.spec, self.now)

    @property
    def run(self) -> RunRecord:
        """The run as it stands."""
        return read(self.ledger, fetch_run, RUN)

    @property
    def period(self) -> ActivePeriod:
        """The newest period of the run."""
        period = read(self.ledger, fetch_period, RUN)
        assert period is not None
        return period.build_period()

    def join(self, *names: str) -> None:
        """Let workers join, and speak."""
        for name in names:
            self.workers[name] = OpenWorker(name)
            self._speak(self.workers[name])

    def kill(self, name: str) -> None:
        """Let a worker be silent from now on."""
        self.workers[name].is_alive = False

    def restart(self) -> None:
        """Go on with a coordinator that has just been started; the ledger and those who live are known."""
        self.active_runs = self._build_active_runs()

    async def step(self, seconds: float = 0.5) -> None:
        """Let time pass: workers do what is due and say so, and the coordinator does what there is to do."""
        self.now += seconds
        self._hand_over()
        for worker in self.workers.values():
            if worker.is_alive:
                self._work(worker)
                self._speak(worker)
        self.roster.remove_silent(self.now)
        run = read(self.ledger, fetch_current_run)
        if run is not None:
            held = read(self.ledger, fetch_fleet, run.run)
            suspects = self.roster.mark_suspects(self.now)
            await self.active_runs.open(run).reaper.sweep(run, held, suspects, self.now)
        self.active_runs.shared.assignment.settle(read(self.ledger, fetch_current_run))
        await self.active_runs.advance(self.now, self.now)
        self._hand_over()
        self._stop()

    async def run_for(self, seconds: float) -> None:
        """Step until so much time has passed."""
        until = self.now + seconds
        while self.now < until - MOMENT_S:
            await self.step()

    async def run_until(self, state: RunState, most_s: float = 120.0) -> None:
        """Step until the run is in a state."""
        until = self.now + most_s
        while self.run.state != state:
            assert self.now < until, f"the run is {self.run.state}"
            await self.step()

    def _build_active_runs(self) -> ActiveRuns:
        return build_active_runs(self.ledger, self.broker, self.roster, lambda: self.now)

    def _speak(self, worker: OpenWorker) -> None:
        leases = {
            name: LeaseProgress(held.done, len(held.dues), build_no_counts())
            for name, held in worker.leases.items()
        }
        progress = Progress(
            worker=worker.name,
            incarnation=worker.incarnation,
            at=self.now,
            leases=leases,
            clock_bound_s=worker.clock_bound_s,
        )
        self.roster.record(progress, self.now, self.now)

    def _hand_over(self) -> None:
        """Give workers the leases that were sent to them."""
        for batch in self.broker.batches[self._read :]:
            [worker] = [each for each in self.workers.values() if each.incarnation == batch.incarnation]
            for lease in batch.leases:
                if lease.id not in worker.leases:
                    assert batch.period is not None
                    worker.leases[lease.id] = HeldLease(lease, self._list_dues(lease, batch.period))
        self._read = len(self.broker.batches)

    def _list_dues(self, lease: Lease, period: ActivePeriod) -> list[tuple[int, float]]:
        assert lease.wave is not None
        lane = Lane(self.schedule, lease.wave, lease.lane)
        return [
            (index, period.unix_time(due_ns / 1e9))
            for start, stop in lease.ranges
            for index, due_ns in lane.iter_dues(start, stop)
        ]

    def _work(self, worker: OpenWorker) -> None:
        """Send what is due, and say so."""
        checkpoints = []
        for held in list(worker.leases.values()):
            done = sum(due_at <= self.now for _, due_at in held.dues)
            if done == held.done and done < len(held.dues):
                continue
            self.sent += [(index, due_at, self.now) for index, due_at in held.dues[held.done : done]]
            held.done = done
            checkpoints.append(self._build_checkpoint(worker, held, is_final=done == len(held.dues)))
        self._apply(worker, checkpoints)

    def _build_checkpoint(self, worker: OpenWorker, held: HeldLease, *, is_final: bool) -> Checkpoint:
        held.sequence += 1
        if is_final:
            del worker.leases[held.lease.id]
        assert held.lease.wave is not None
        part = build_open_part([1000] * held.done)
        part = msgspec.structs.replace(
            part,
            phase=self.schedule.find_phase(held.lease.wave.begin).name,
            per_second={int(self.period.starts_at): part.outcomes},
        )
        return Checkpoint(
            lease=held.lease.id,
            sequence=held.sequence,
            done=held.done,
            end=held.done if is_final else len(held.dues),
            is_final=is_final,
            parts=[part] if held.done else [],
            figures=LeaseFigures(started_at=self.now if held.done else 0.0, ended_at=self.now),
        )

    def _apply(self, worker: OpenWorker, checkpoints: list[Checkpoint]) -> None:
        if not checkpoints:
            return
        batch = CheckpointBatch(
            worker=worker.name, incarnation=worker.incarnation, run=RUN, checkpoints=checkpoints
        )
        change(self.ledger, fold_batches, [batch], lambda _batch, _spec: 0, self.now)

    def _stop(self) -> None:
        """Give back what is called back, at the time that was named."""
        stops = list(zip(self.broker.stops, self.broker.stop_times, strict=True))
        if not stops or self.run.state not in (RunState.PAUSING, RunState.CANCELLING):
            return
        at = stops[-1][1]
        if at is None or self.now < at - MOMENT_S:
            return
        for worker in self.workers.values():
            if worker.is_alive:
                self._apply(
                    worker,
                    [
                        self._build_checkpoint(worker, held, is_final=True)
                        for held in list(worker.leases.values())
                    ],
                )

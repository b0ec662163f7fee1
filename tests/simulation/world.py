"""One seed, played: the coordinator, its workers, their broker and target, and what befalls them.

The world goes on until the faults are over and the run has ended; the laws are checked all the time.
"""

import math
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.kit.fast_folder import find_fast_folder
from tests.simulation.actors.attacker import Attacker
from tests.simulation.actors.coordinator import CoordinatorActor
from tests.simulation.actors.operator import Operator
from tests.simulation.actors.worker import WorkerActor
from tests.simulation.bounds import Bound, measure_bound
from tests.simulation.faults import Misfortune
from tests.simulation.laws import LawBrokenError, Standing
from tests.simulation.machine.clocks import MachineClock
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.interposition import interpose
from tests.simulation.machine.memory_recorder import RecordShelf
from tests.simulation.machine.process import KilledError, Process
from tests.simulation.machine.scheduler import Scheduler
from tests.simulation.outside.broker import Broker
from tests.simulation.outside.target import Target
from tests.simulation.periods import Moment
from tests.simulation.plan import Plan, WorkerPlan, estimate_slot_rps
from tests.simulation.played_run import PlayedRun
from tests.simulation.skips import observe_skips
from tests.simulation.story import Story
from tests.simulation.window_watch import WindowWatch

from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.messaging.signing import Signer
from oku_core.spec.spec import Spec
from oku_workers.executions.scheduled_execution import ScheduledExecution

KEY = b"the key of the simulation"
_NAMES = ("run", "next")
_LOOK_S = 1.0
_SHARES_SETTLE_S = 5.0
"""All know their shares of a run when nothing has changed for so long."""
_CLOCKS_DIFFER_S = 0.2
"""A worker whose clock drifts more than it believes is no further off than this."""
_LASTS_S = 10.0
"""After its end nothing of a run may change any more, whatever comes."""
_COMES_BACK_S = 4.0
_PATIENCE_S = 240.0
_MOST_STEPS = 5_000_000
_MOST_WAITING = 3000


@dataclass(frozen=True)
class Ending:
    """How a seed went.

    Attributes:
        seed: the seed.
        faults: how many faults there were.
        steps: how many things happened.
        seconds: simulated seconds.
        digest: of the story; the same whenever this seed is played.
        broken: the law that was broken, and the story; empty if none was.
        bounds: how wide `resent_at_most` is, of each run that has ended.
    """

    seed: int
    faults: int
    steps: int
    seconds: float
    digest: str
    state: str
    broken: str = ""
    story: str = ""
    bounds: tuple[Bound, ...] = ()


class World:
    """All that there is.

    Args:
        plan: what is to happen.
        folder: a new folder of the real machine.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.scheduler = Scheduler()
        self.story = Story(lambda: self.scheduler.now, plan.lines)
        self.signer = Signer(KEY)
        self.broker = Broker(self.scheduler, self.draw_from("broker"), self.story)
        self.runs = {
            name: PlayedRun(name, spec, plan, self.draw_from(f"target of {name}"))
            for name, spec in zip(_NAMES, plan.specs, strict=False)
        }
        (folder / "0").mkdir()
        self.disk = Disk(folder, self.draw_from("disk"), self.story.note)
        self.attacker = Attacker(
            self.broker,
            self.draw_from("attacker"),
            self.signer,
            self.story.note_fault,
            self._find_done,
        )
        self.operator = Operator(self)
        self.misfortune = Misfortune(self, self.draw_from("faults"))
        self.processes: list[Process] = []
        self.coordinator = CoordinatorActor(self)
        self.workers: list[WorkerActor] = []
        self._shelves: dict[str, RecordShelf] = {}
        self._added = 0
        self.broken = ""
        self._mended_at: float | None = None
        self._windows = WindowWatch(self)
        self._clock_ns: int | None = None
        self._clock_error_s = 0.0
        self._comings = self.draw_from("comings")

    @property
    def current(self) -> str | None:
        """The first run that is not over."""
        return next((run.run for run in self.runs.values() if not run.is_over), None)

    @property
    def stopped(self) -> list[str]:
        """The runs that somebody has to resume, or they do not go on."""
        states = (RunState.PAUSED, RunState.PAUSING, RunState.FAILED)
        return [name for name, run in self.runs.items() if run.standing and run.standing.state in states]

    def find_target(self, run: str) -> Target:
        """The target of a run."""
        return self.runs[run].target

    def find_shelf(self, worker: str) -> RecordShelf:
        """The records of the machine of a worker: its own, or one that all share, as in a local stack."""
        return self._shelves.setdefault("" if self.plan.shares_machine else worker, RecordShelf())

    def draw_from(self, what: str) -> random.Random:
        """A source of chance for one part of the world, so that none disturbs another."""
        return random.Random(f"{self.plan.seed} {what}")

    def start_process(self, name: str, clock: MachineClock) -> Process:
        """A new process on a machine with this clock."""
        process = Process(name, self.scheduler, clock, self._note_error)
        self.processes.append(process)
        return process

    def add_worker(self) -> None:
        """Another worker comes."""
        number = len(self.plan.workers) + self._added  # some of the plan may be still to come
        if number < 12:
            self._added += 1
            slowness = 10 ** self._comings.uniform(0, 2)
            self.story.note_fault(f"worker w{number} comes")
            self._let_come(WorkerPlan(f"w{number}", slowness, 1.0, self._comings.gauss(0, 10), 0.0))

    def _find_done(self, lease: str) -> int:
        """How far a lease is for good: what was written when the power was cut may be gone."""
        return self.runs[_NAMES[0]].judge.find_done(lease) if self.coordinator.process.is_alive else 0

    def try_second_coordinator(self) -> None:
        """Somebody starts a coordinator on the ledger that this one has."""
        self.story.note_fault("a second coordinator tries to start")
        self.coordinator.try_second()

    def break_law(self, error: BaseException) -> None:
        """A law is broken: the world ends."""
        if self.broken:
            return
        self.broken = f"{type(error).__name__}: {error}"
        if not isinstance(error, LawBrokenError):
            self.broken += "\n" + "".join(traceback.format_tb(error.__traceback__)[-6:])

    def play(self) -> None:
        """Let all of it happen."""
        self.coordinator.start()
        for plan in self.plan.workers:
            self.scheduler.after(plan.joins_at_s, lambda plan=plan: self._let_come(plan))  # type: ignore[misc]
        for at, fault in self.plan.faults:
            self.scheduler.after(at, lambda fault=fault: self.misfortune.strike(fault))  # type: ignore[misc]
        self.scheduler.after(self.plan.faults_end_s, self._mend)
        self.scheduler.after(_LOOK_S, self._look)
        self._windows.start()
        self.scheduler.run_until(self._is_over)

    def end(self) -> None:
        """Let go of all that the world had."""
        for process in self.processes:
            process.bury()
        for run in self.runs.values():
            run.judge.close()
        self.disk.release()
        self.coordinator.release()

    def _is_over(self) -> bool:
        if self.broken or self.scheduler.steps > _MOST_STEPS:
            self.broken = self.broken or "the world does not come to rest"
            return True
        return all(
            run.ended_at is not None and self.scheduler.now - run.ended_at > _LASTS_S
            for run in self.runs.values()
        )

    def _let_come(self, plan: WorkerPlan) -> None:
        worker = WorkerActor(self, plan)
        self.workers.append(worker)
        worker.restart()

    def _mend(self) -> None:
        self.misfortune.mend()
        self._mended_at = self.scheduler.now

    def _look(self) -> None:
        """Look at everything once a second."""
        self.scheduler.after(_LOOK_S, self._look)
        if not self.coordinator.process.is_alive and not self.coordinator.is_coming:
            self.coordinator.come_back(self._comings.uniform(0.2, _COMES_BACK_S))
        if self._mended_at is not None:
            for worker in self.workers:
                worker.restart()
        try:
            self._check()
        except LawBrokenError as error:
            self.break_law(error)

    def _check(self) -> None:
        for run in self.runs.values():
            if run.is_submitted:
                self._check_end(run, run.check(self.scheduler.now, self.story.note))
                if (moment := self.find_moment()) is not None:
                    run.check_clock(Moment(moment.now, _CLOCKS_DIFFER_S + self._clock_error_s))
        self._check_memory()
        self._windows.check()
        if self._mended_at is not None:
            self.operator.resume()

    @property
    def calm_since(self) -> float | None:
        """When the last fault was over; None while some are still to come."""
        return self._mended_at if self.plan.faults else 0.0

    def count_steady_workers(self) -> int | None:
        """How many workers there are, if nothing fails and all have been there for a while."""
        joined = [worker for worker in self.workers if worker.is_alive]
        since = [worker.started_at for worker in joined]
        if self.plan.faults:
            since.append(math.inf if self._mended_at is None else self._mended_at)
        if any(self.scheduler.now - at < _SHARES_SETTLE_S for at in since):
            return None
        return len(joined)

    def find_moment(self) -> Moment | None:
        """What time it is by the coordinator's clock; None while there is none that counts."""
        coordinator = self.coordinator
        if coordinator.parts is None or not coordinator.process.is_alive:
            return None
        if not coordinator.parts.base.clock_store.is_settled:
            return None
        clock = coordinator.parts.base.clock
        if self._clock_ns is not None:
            # Without its file it goes on as workers know it, who have heard of it a while ago.
            self._clock_error_s += abs(clock.offset_ns - self._clock_ns) / 1e9
        self._clock_ns = clock.offset_ns
        return Moment(coordinator.process.clock.monotonic() + clock.offset_ns / 1e9, 0.0)

    def check_in_flight(self, name: str) -> None:
        """Check that the target has no more requests of a run than it asks for: one was sent.

        Only those count whose lease is open in the ledger: the others were taken back from a worker that was
        declared dead.
        """
        run = self.runs[name]
        engines = [worker.engine for worker in self.workers if worker.is_alive and worker.engine is not None]
        most = run.spec.concurrency
        if sum(engine.count_sent(name) for engine in engines) <= most:
            return
        leases = run.judge.list_open_leases()
        counts = [engine.count_sent(name, leases) for engine in engines]
        if sum(counts) > most:
            self.break_law(LawBrokenError(f"{counts} requests are in flight, but {most} are allowed"))

    def note_skipped(self, execution: ScheduledExecution, cause: int, due_ns: int) -> None:
        """The process that runs now does not send a request."""
        worker = next(worker for worker in self.workers if worker.process is Process.current)
        try:
            worker.note_skipped(execution, cause, due_ns)
        except LawBrokenError as error:
            self.break_law(error)

    def _check_memory(self) -> None:
        if self.broker.waiting > _MOST_WAITING:
            raise LawBrokenError(f"{self.broker.waiting} messages wait in the broker")
        for worker in self.workers:
            worker.check_memory()

    def _check_end(self, run: PlayedRun, standing: Standing) -> None:
        if standing.state == RunState.PENDING:
            self._windows.note_turn()
        if self._mended_at is None or standing.state in FINAL_STATES - {RunState.FAILED}:
            return
        waited_s = self.scheduler.now - self._mended_at
        if waited_s > self._find_patience_s():
            raise LawBrokenError(
                f"{run.run} is still {standing.state} {waited_s:.0f} s after the last fault:"
                f" {standing.accounted} of {run.spec.requests} are accounted"
            )

    def _find_patience_s(self) -> float:
        """How long all runs may take once nothing fails any more, with the workers that have come."""
        plans = [worker.plan for worker in self.workers] or self.plan.workers
        return _PATIENCE_S + 3 * sum(
            _estimate_s(run.spec, estimate_slot_rps(2 * self.plan.latency_s, plans, run.spec))
            for run in self.runs.values()
        )

    def _note_error(self, process: Process, error: BaseException | None, message: str) -> None:
        self.story.note(f"{process.name}: {message}")
        self.break_law(error or LawBrokenError(f"{process.name}: {message}"))


def _estimate_s(spec: Spec, slot_rps: float) -> float:
    """How long a run takes, if each request in flight makes so many in a second."""
    if spec.length_s is not None:
        # What may be sent however late waits for workers that are slower than the rate.
        late_s = spec.requests / slot_rps if spec.is_open and spec.late.duration_s is None else 0.0
        return float(spec.length_s) + spec.drain_s + late_s
    pace_s = spec.requests / float(spec.max_rate.per_second) if spec.max_rate is not None else 0.0
    return pace_s + spec.requests / (spec.concurrency * slot_rps)


def play(plan: Plan, prepare: Callable[[World], None] = lambda _: None) -> Ending:
    """Play what a seed means; the same seed always ends the same way.

    Args:
        plan: what is to happen.
        prepare: changes the world before it begins.
    """
    folder = Path(tempfile.mkdtemp(prefix="oku-simulation-", dir=find_fast_folder()))
    world = World(plan, folder)
    try:
        with (
            interpose(world.draw_from("ids"), lambda: world.scheduler.now, world.disk.connect),
            observe_skips(world.note_skipped),
        ):
            prepare(world)
            try:
                world.play()
            except (Exception, KilledError) as error:  # noqa: BLE001  # it ends the seed and is told with its story
                world.break_law(error)
            world.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Ending(
        seed=plan.seed,
        faults=world.story.faults,
        steps=world.scheduler.steps,
        seconds=world.scheduler.now,
        digest=world.story.digest,
        state=" ".join(run.standing.state if run.standing else "" for run in world.runs.values()),
        broken=world.broken,
        story=world.story.tell() if world.broken else "",
        bounds=tuple(
            measure_bound(run.spec, run.standing, run.target.sent)
            for run in world.runs.values()
            if run.standing is not None
        ),
    )

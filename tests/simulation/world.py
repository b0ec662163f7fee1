"""One seed, played: the coordinator, its workers, their broker and target, and what befalls them.

The world goes on until the faults are over and the run has ended; the laws are checked all the time.
"""

import random
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.actors.attacker import Attacker
from tests.simulation.actors.coordinator import CoordinatorActor
from tests.simulation.actors.operator import Operator
from tests.simulation.actors.worker import WorkerActor
from tests.simulation.faults import Misfortune
from tests.simulation.laws import LawBrokenError, Standing
from tests.simulation.machine.clocks import MachineClock
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.interposition import interpose
from tests.simulation.machine.process import KilledError, Process
from tests.simulation.machine.scheduler import Scheduler
from tests.simulation.outside.broker import Broker
from tests.simulation.outside.target import Target
from tests.simulation.plan import Plan, WorkerPlan, draw_plan
from tests.simulation.played_run import PlayedRun
from tests.simulation.story import Story

from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.messaging.signing import Signer

KEY = b"the key of the simulation"
_NAMES = ("run", "next")
_LOOK_S = 1.0
_SAMPLE_S = 0.1
_CALMS_DOWN_S = 15.0
_SETTLES_S = 4.0
_FULL_SHARE = 0.97
_LASTS_S = 10.0
"""After its end nothing of a run may change any more, whatever comes."""
_FEWEST_SAMPLES = 100
_MOST_UNFILLED, _MOST_UNFILLED_AFTER_FAULTS = 0.03, 0.25
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
    """

    seed: int
    faults: int
    steps: int
    seconds: float
    digest: str
    state: str
    broken: str = ""
    story: str = ""


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
        self._added = 0
        self.broken = ""
        self._mended_at: float | None = None
        self._samples = self._unfilled = 0
        self._turned_at = 0.0
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
        self.scheduler.after(_SAMPLE_S, self._sample)
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
        self._check_memory()
        self._check_fullness()
        if self._mended_at is not None:
            self.operator.resume()

    def _sample(self) -> None:
        """Look whether windows are full where nothing is in the way, and there is enough to do."""
        self.scheduler.after(_SAMPLE_S, self._sample)
        calm_since = 0.0 if not self.plan.faults else self._mended_at
        run = next((run for run in self.runs.values() if not run.is_over), None)
        standing = run.standing if run is not None else None
        if run is None or standing is None or standing.state != RunState.RUNNING or calm_since is None:
            return
        window = run.spec.concurrency
        if standing.pending < 4 * window * len(self.workers):
            return
        for worker in self.workers:
            begun_at = max(worker.started_at, calm_since + _CALMS_DOWN_S, self._turned_at)
            if worker.engine is not None and self.scheduler.now - begun_at > _SETTLES_S:
                self._samples += 1
                self._unfilled += worker.engine.in_flight < _FULL_SHARE * window

    def _check_memory(self) -> None:
        if self.broker.waiting > _MOST_WAITING:
            raise LawBrokenError(f"{self.broker.waiting} messages wait in the broker")
        for worker in self.workers:
            worker.check_memory()

    def _check_fullness(self) -> None:
        most = _MOST_UNFILLED_AFTER_FAULTS if self.plan.faults else _MOST_UNFILLED
        if self._samples > _FEWEST_SAMPLES and self._unfilled > most * self._samples:
            raise LawBrokenError(
                f"in {self._unfilled} of {self._samples} looks a window was not full although there was"
                " enough to do"
            )

    def _check_end(self, run: PlayedRun, standing: Standing) -> None:
        if standing.state == RunState.PENDING:
            self._turned_at = self.scheduler.now
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
        windows = sum(1 / (2 * self.plan.latency_s * plan.slowness) for plan in plans)
        return _PATIENCE_S + 3 * sum(
            run.spec.requests / (run.spec.concurrency * windows) for run in self.runs.values()
        )

    def _note_error(self, process: Process, error: BaseException | None, message: str) -> None:
        self.story.note(f"{process.name}: {message}")
        self.break_law(error or LawBrokenError(f"{process.name}: {message}"))


def play(plan: Plan, prepare: Callable[[World], None] = lambda _: None) -> Ending:
    """Play what a seed means; the same seed always ends the same way.

    Args:
        plan: what is to happen.
        prepare: changes the world before it begins.
    """
    folder = Path(tempfile.mkdtemp(prefix="oku-simulation-", dir=_find_fast_folder()))
    world = World(plan, folder)
    try:
        with interpose(world.draw_from("ids"), lambda: world.scheduler.now, world.disk.connect):
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
    )


def play_seed(seed: int) -> Ending:
    """Play a seed."""
    return play(draw_plan(seed))


def _find_fast_folder() -> str | None:
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() else None

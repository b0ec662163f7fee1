"""Whether windows are as full as they should be, looked at ten times a second.

Those of a closed run are full when nothing is in the way and there is enough to do. Together, they are what
the run asks for.
"""

from typing import TYPE_CHECKING

from tests.simulation.laws import LawBrokenError, Standing

from oku_core.accounting.run_state import RunState

if TYPE_CHECKING:
    from tests.simulation.played_run import PlayedRun
    from tests.simulation.world import World

    from oku_core.spec.spec import Spec

_SAMPLE_S = 0.1
_CALMS_DOWN_S = 15.0
_SETTLES_S = 4.0
_FULL_SHARE = 0.97
_FEWEST_SAMPLES, _ONE_GAP = 100, 5
"""Few looks say little: half a second without work, once, is a large share of them."""
_MOST_UNFILLED, _MOST_UNFILLED_AFTER_FAULTS = 0.03, 0.25
_MOST_UNEVEN = 40
"""So many looks one after the other may see shares of workers that come late: an old message may come."""


class WindowWatch:
    """Looks at the windows of all workers.

    Args:
        world: where they work.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._samples = self._unfilled = self._uneven = 0
        self._turned_at = 0.0

    def start(self) -> None:
        """Begin to look."""
        self._world.scheduler.after(_SAMPLE_S, self._sample)

    def note_turn(self) -> None:
        """A run waits for its turn."""
        self._turned_at = self._world.scheduler.now

    def check(self) -> None:
        """Check how often windows were not full.

        Raises:
            LawBrokenError: it was too often.
        """
        most = _MOST_UNFILLED_AFTER_FAULTS if self._world.plan.faults else _MOST_UNFILLED
        if self._samples > _FEWEST_SAMPLES and self._unfilled > _ONE_GAP + most * self._samples:
            raise LawBrokenError(
                f"in {self._unfilled} of {self._samples} looks a window was not full although there was"
                " enough to do"
            )

    def _sample(self) -> None:
        world = self._world
        world.scheduler.after(_SAMPLE_S, self._sample)
        run = next((run for run in world.runs.values() if not run.is_over), None)
        standing = run.standing if run is not None else None
        moment, calm_since = world.find_moment(), world.calm_since
        if run is None or standing is None or standing.state != RunState.RUNNING or calm_since is None:
            return
        if run.limits is None or moment is None:
            return  # its schedule says how many are in flight
        if not run.hooks.is_set_up():
            self._turned_at = world.scheduler.now
            return
        clock_s = run.find_clock_s(moment.now) if run.spec.is_timed else 0.0
        self._check_shares(run, run.limits.find_concurrency(clock_s))
        if not run.spec.stages and run.spec.max_rate is None and run.limits.is_steady(clock_s):
            self._sample_fullness(run, standing, calm_since + (_CALMS_DOWN_S if world.plan.faults else 0))

    def _sample_fullness(self, run: "PlayedRun", standing: Standing, calm_since: float) -> None:
        world, spec = self._world, run.spec
        if standing.pending < 4 * spec.concurrency:
            return
        # Until the first requests of a small window have timed out, nobody knows the rate of its worker.
        settles_s = _SETTLES_S + spec.timeout_s / max(1, spec.concurrency // len(world.workers))
        settled = [
            (worker.incarnation, worker.engine)
            for worker in world.workers
            if worker.engine is not None
            and world.scheduler.now - max(worker.started_at, calm_since, self._turned_at) > settles_s
        ]
        wanted = _count_wanted(spec, len(settled))
        if wanted < len(settled) and world.scheduler.now - max(calm_since, self._turned_at) > settles_s:
            holders = run.judge.list_holders()
            self._samples += 1
            self._unfilled += len(holders) < wanted
            settled = [(incarnation, engine) for incarnation, engine in settled if incarnation in holders]
        for _, engine in settled:
            self._samples += 1
            self._unfilled += engine.in_flight < _FULL_SHARE * engine.window

    def _check_shares(self, run: "PlayedRun", bounds: tuple[int, int] | None) -> None:
        # A worker without leases has nothing in flight, and may not have its share yet.
        holders = run.judge.list_holders()
        workers = [each for each in self._world.workers if each.is_alive and each.incarnation in holders]
        wanted = _count_wanted(run.spec, len(self._world.workers))
        engines = [worker.engine for worker in workers]
        windows = [engine.window for engine in engines if engine is not None and engine.spec == run.spec]
        is_whole = len(windows) == len(engines) == wanted
        if bounds is None or self._world.count_steady_workers() is None:
            self._uneven = 0
        elif sum(windows) > bounds[1] or (is_whole and sum(windows) < bounds[0]):
            self._uneven += 1
        else:
            self._uneven = 0
        if self._uneven > _MOST_UNEVEN:
            error = LawBrokenError(f"the windows are {windows}, but {bounds} are asked for in all")
            self._world.break_law(error)


def _count_wanted(spec: "Spec", workers: int) -> int:
    """How many of so many workers a run gets."""
    return min(spec.workers or workers, spec.most_workers, workers)

"""One run of a world: its target, who judges it, and how it stands."""

import random
from collections import Counter
from collections.abc import Callable

from tests.simulation.due_times import DueTimes
from tests.simulation.hook_book import HookBook
from tests.simulation.laws import Judge, LawBrokenError, Standing
from tests.simulation.outside.target import LOST, NOT_SENT, Target
from tests.simulation.periods import Moment, Period, check_periods
from tests.simulation.plan import Plan
from tests.simulation.time_limits import TimeLimits

from oku_core.accounting.run_state import ACTIVE_STATES, FINAL_STATES, RunState
from oku_core.spec.request_template import find_target_turns, list_target_names
from oku_core.spec.spec import Spec


class PlayedRun:
    """A run from its submission until a while after its end.

    Args:
        run: its id.
        spec: what it sends.
        plan: of the world.
        chance: draws the answers of its target.
    """

    def __init__(self, run: str, spec: Spec, plan: Plan, chance: random.Random) -> None:
        self.run = run
        self.spec = spec
        self.target = Target(plan.latency_s, plan.slow_share, chance, is_user_code=spec.runs_user_code)
        self.judge = Judge(run, spec.requests, self.target, is_open=spec.is_open)
        self.dues = DueTimes(spec) if spec.is_open else None
        self.limits = None if spec.is_open else TimeLimits(spec)
        self._has_faults = bool(plan.faults)
        self.hooks = HookBook(
            run,
            spec.hooks,
            self.judge,
            random.Random(f"hooks {plan.seed} {run}"),
            has_faults=self._has_faults,
        )
        self._clock_s = 0.0
        self._was_active = False
        self.is_submitted = False
        self.standing: Standing | None = None
        self.ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is complete, or was cancelled."""
        return self.ended_at is not None

    @property
    def periods(self) -> list[Period]:
        """When the clock of the run goes."""
        return [Period(*period) for period in self.judge.fetch_periods()]

    def find_clock_s(self, unix_now: float) -> float:
        """What the clock of the run says at a Unix time; 0 before its first period."""
        periods = self.periods
        return periods[-1].find_reached_s(unix_now) if periods else 0.0

    def check_clock(self, moment: Moment) -> None:
        """Check what depends on the clock of the run.

        Raises:
            LawBrokenError: a law does not hold.
        """
        periods, standing = self.periods, self.standing
        check_periods(periods, may_rewind=self.spec.is_open)
        if standing is None:
            return
        if self.dues is not None:
            self.dues.note_waves(self.judge.fetch_waves())
            for period in periods[-1:]:
                self.dues.note_clock(period.find_reached_s(moment.now))
                # What is late may be sent, or given up, after the schedule is over and its clock has stopped.
                if standing.state in ACTIVE_STATES or (self._was_active and standing.state in FINAL_STATES):
                    self.dues.note_clock(period.measure_s(moment.now))
            self._was_active = standing.state in ACTIVE_STATES
            self.dues.check_given_up(self.judge.list_unsent(), moment)
            self.dues.check_lost(standing.outcomes[LOST], self.judge.fetch_dead(), periods, moment)
            self._check_causes(self.dues, standing)
        elif self.limits is not None:
            # Once no run is active the coordinator may follow another clock.
            self._clock_s = max(self._clock_s, self.find_clock_s(moment.now))
            if standing.unused and standing.state == RunState.COMPLETED:
                self.limits.check_unused(self._clock_s + moment.slack_s)

    def _check_causes(self, dues: DueTimes, standing: Standing) -> None:
        if standing.phases and dues.count_in_phases(self.judge.accounted) != {
            phase: count for phase, count in standing.phases.items() if count
        }:
            raise LawBrokenError(f"the accounts of the phases {standing.phases} are not of what is accounted")
        unsent = standing.outcomes[NOT_SENT] + standing.outcomes[LOST]
        if self.spec.late.duration_s is None and unsent:
            raise LawBrokenError(f"{unsent} requests are not sent, which may be sent however late")
        _, late, not_dealt = standing.not_sent or (0, 0, 0)
        if not self._has_faults and (late or not_dealt or standing.outcomes[LOST]):
            raise LawBrokenError(
                f"nothing fails, but {late} are too late, {not_dealt} were not dealt, and"
                f" {standing.outcomes[LOST]} are lost"
            )

    def _check_targets(self, standing: Standing) -> None:
        """Each request counts for the target that its index asks."""
        names, turns = list_target_names(self.spec), find_target_turns(self.spec)
        find_index = self.dues.find_index if self.dues is not None and len(names) > 1 else int
        indices = (find_index(place) for start, stop in self.judge.accounted for place in range(start, stop))
        counts = dict(Counter(names[turns[index % len(turns)]] for index in indices))
        if counts != {name: count for name, count in standing.targets.items() if count}:
            raise LawBrokenError(
                f"the accounts of targets are {standing.targets}, but {counts} are accounted"
            )

    def _check_workers(self) -> None:
        """No more workers than it asks for may send a run at any moment."""
        wanted = self.spec.workers
        if wanted is not None and len(holders := self.judge.list_holders()) > wanted:
            raise LawBrokenError(
                f"{self.run} asks for {wanted} workers, and {len(holders)} have leases of it"
            )

    def check(self, now: float, note: Callable[[str], None]) -> Standing:
        """Check all laws, and take note of what has changed.

        Raises:
            LawBrokenError: a law does not hold.
        """
        before = self.standing
        self.standing = standing = self.judge.check()
        if before is None or before.state != standing.state:
            note(f"{self.run} is {standing.state}: {standing.reason}")
        if standing != before:
            note(
                f"{self.run}: {standing.accounted} accounted, {standing.resent} resent at most,"
                f" {self.target.sent} sent, {standing.leases} leases"
            )
        self.hooks.check(standing)
        self._check_workers()
        if standing.state in FINAL_STATES | {RunState.PAUSED}:
            self.judge.check_at_rest()
            self._check_targets(standing)
        if standing.state not in (RunState.COMPLETED, RunState.CANCELLED):
            self.ended_at = None  # also again: the commit that ended it can be lost with the power
        elif self.ended_at is None:
            self.ended_at = now
        return standing

"""One run of a world: its target, who judges it, and how it stands."""

import random
from collections.abc import Callable

from tests.simulation.laws import Judge, Standing
from tests.simulation.outside.target import Target
from tests.simulation.plan import Plan

from oku_core.accounting.run_state import FINAL_STATES, RunState
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
        self.target = Target(spec.requests, plan.latency_s, plan.slow_share, chance)
        self.judge = Judge(run, spec.requests, self.target)
        self.is_submitted = False
        self.standing: Standing | None = None
        self.ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is complete, or was cancelled."""
        return self.ended_at is not None

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
        if standing.state in FINAL_STATES | {RunState.PAUSED}:
            self.judge.check_at_rest()
        if standing.state not in (RunState.COMPLETED, RunState.CANCELLED):
            self.ended_at = None  # also again: the commit that ended it can be lost with the power
        elif self.ended_at is None:
            self.ended_at = now
        return standing

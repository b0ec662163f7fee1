"""The hooks of one run: simulated workers call them here, and the laws about them are judged from outside.

What a hook returns names the attempt, so that whoever goes by it can be asked which one he has.
"""

import asyncio
import random
from collections.abc import Callable

from tests.simulation.laws import HookRow, Judge, LawBrokenError, Standing

from oku_core.accounting.outcome import NOT_SENT
from oku_core.messaging.hook import HookAttempt, SetupData
from oku_core.spec.spec import Hook
from oku_core.user_code.messages import Returned
from oku_workers.engines.user_code.hook_caller import HostLostError

_LOST_SHARE, _FAILED_SHARE = 0.2, 0.05
_OVER = ("done", "failed", "given_up")


class HookBook:
    """Calls the hooks of a run, and judges what comes of them.

    Args:
        run: its id.
        hooks: those that it has.
        judge: of the run.
        chance: draws how long they take, and whether they end well.
        has_faults: whether anything else fails in this world; if nothing does, no hook does.
    """

    def __init__(
        self, run: str, hooks: tuple[Hook, ...], judge: Judge, chance: random.Random, *, has_faults: bool
    ) -> None:
        self._run = run
        self._hooks = hooks
        self._judge = judge
        self._chance = chance
        self._has_faults = has_faults
        self._called: set[tuple[Hook, int]] = set()
        self._returned: dict[tuple[Hook, int], str] = {}
        self._known: set[int] = set()
        """The attempts at the setup that iterations may go by."""

    async def call(
        self, attempt: HookAttempt, setup_data: str, process: str, note: Callable[[str], None]
    ) -> Returned:
        """A process of a worker calls a hook.

        Raises:
            LawBrokenError: it should not.
            HostLostError: its process has ended.
        """
        key = (attempt.hook, attempt.number)
        note(f"{process} calls {attempt}")
        self._check_call(attempt, setup_data)
        self._called.add(key)
        await asyncio.sleep(self._chance.choice((0.05, 1.0, 6.0)) * self._chance.random())
        drawn = self._chance.random() if self._has_faults else 1.0
        if drawn < _LOST_SHARE:
            raise HostLostError("its process has ended (SIGKILL)")
        if drawn < _LOST_SHARE + _FAILED_SHARE:
            return Returned(error="ValueError: no (a.py:3 in setup)")
        self._returned[key] = f'"{attempt.hook} {attempt.number} by {process}"'
        return Returned(self._returned[key])

    def check_taken(self, setup: SetupData) -> None:
        """An iteration begins with what a setup returned: that must be what the ledger has taken.

        Raises:
            LawBrokenError: it is not.
        """
        if Hook.SETUP not in self._hooks or setup.attempt in self._known:
            return
        row = self._judge.fetch_hooks().get(Hook.SETUP)
        if (
            row is None
            or row.attempt < setup.attempt
            or (row.attempt == setup.attempt and row.state != "done")
        ):
            raise LawBrokenError(f"an iteration begins by attempt {setup.attempt} at setup, but {row} counts")
        if self._returned.get((Hook.SETUP, setup.attempt)) != setup.value:
            raise LawBrokenError(f"an iteration gets {setup}, which no setup has returned")
        self._known.add(setup.attempt)

    def is_set_up(self) -> bool:
        """Whether the run has no setup, or the ledger has taken what it returned."""
        return self._is_set_up(self._judge.fetch_hooks().get(Hook.SETUP))

    def check(self, standing: Standing) -> None:
        """Check what must hold at any moment, and once the run is over.

        Raises:
            LawBrokenError: a law does not hold.
        """
        rows = self._judge.fetch_hooks()
        for hook, row in rows.items():
            if row.state == "done" and self._returned.get((hook, row.attempt)) != row.value:
                raise LawBrokenError(f"{row} is taken of {hook}, which has not returned it")
        setup, teardown = rows.get(Hook.SETUP), rows.get(Hook.TEARDOWN)
        is_set_up = self._is_set_up(setup)
        if standing.leases and not is_set_up:
            raise LawBrokenError(f"{standing.leases} leases are open, but the setup is {setup}")
        if teardown is not None and teardown.state == "begun" and standing.leases:
            raise LawBrokenError(f"the teardown is {teardown}, but {standing.leases} leases are open")
        if standing.state in ("completed", "cancelled"):
            self._check_end(standing, teardown, is_set_up=is_set_up)

    def _is_set_up(self, setup: HookRow | None) -> bool:
        return Hook.SETUP not in self._hooks or (setup is not None and setup.state == "done")

    def _check_end(self, standing: Standing, teardown: HookRow | None, *, is_set_up: bool) -> None:
        # Without a setup there is nothing to tear down unless some of the run was dealt out.
        begun = standing.accounted - (0 if Hook.SETUP in self._hooks else standing.outcomes[NOT_SENT])
        is_owed = Hook.TEARDOWN in self._hooks and is_set_up and begun > 0
        if is_owed and (teardown is None or teardown.state not in _OVER):
            raise LawBrokenError(f"the run is {standing.state}, but its teardown is {teardown}")
        if teardown is not None and teardown.attempt and not is_set_up:
            raise LawBrokenError(f"the teardown is {teardown}, but there was no setup")
        if not self._has_faults and self._called != {(hook, 1) for hook in self._hooks}:
            raise LawBrokenError(f"nothing fails, but these are called: {sorted(self._called)}")

    def _check_call(self, attempt: HookAttempt, setup_data: str) -> None:
        rows, standing = self._judge.fetch_hooks(), self._judge.fetch_standing()
        row = rows.get(attempt.hook)
        if (attempt.hook, attempt.number) in self._called:
            raise LawBrokenError(f"{attempt} is called twice")
        if row is None or row.attempt < attempt.number:
            raise LawBrokenError(f"{attempt} is called, but {row} counts")
        if row.attempt > attempt.number or row.state != "begun":
            return  # the order was late: what comes of it does not count
        if standing.leases or (attempt.hook == Hook.SETUP and standing.state == "tearing_down"):
            raise LawBrokenError(f"{attempt} is called while the run is {standing}")
        setup = rows.get(Hook.SETUP)
        if attempt.hook == Hook.TEARDOWN and setup is not None and setup_data != setup.value:
            raise LawBrokenError(f"the teardown gets {setup_data}, but {setup} counts")

"""The one state machine of a run; docs/architecture.md has its picture, which is made from this table."""

from collections.abc import Mapping
from enum import StrEnum


class RunState(StrEnum):
    """The states of a run."""

    PENDING = "pending"
    """Submitted or resumed; waits for its turn."""
    RUNNING = "running"
    """Leases are dealt out."""
    PAUSING = "pausing"
    """No new leases; workers finish requests in flight and return the rest."""
    PAUSED = "paused"
    """Nothing is in flight; can be resumed at any time."""
    TEARING_DOWN = "tearing_down"
    """Nothing is sent any more; `teardown` of the scenario is called before the run is over."""
    COMPLETED = "completed"
    """Every index is accounted."""
    CANCELLING = "cancelling"
    """Like pausing, but for good."""
    CANCELLED = "cancelled"
    """Ended on request before every index was accounted."""
    FAILED = "failed"
    """Ended because it could not go on; the reason is kept with it."""


TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    RunState.PENDING: frozenset(
        {RunState.RUNNING, RunState.PAUSED, RunState.TEARING_DOWN, RunState.CANCELLED, RunState.FAILED}
    ),
    RunState.RUNNING: frozenset(
        {
            RunState.PAUSING,
            RunState.CANCELLING,
            RunState.TEARING_DOWN,
            RunState.COMPLETED,
            RunState.FAILED,
            RunState.PAUSED,
        }
    ),
    RunState.PAUSING: frozenset(
        {
            RunState.PAUSED,
            RunState.CANCELLING,
            RunState.TEARING_DOWN,
            RunState.COMPLETED,
            RunState.FAILED,
        }
    ),
    RunState.PAUSED: frozenset(
        {RunState.PENDING, RunState.TEARING_DOWN, RunState.CANCELLED, RunState.FAILED}
    ),
    RunState.CANCELLING: frozenset(
        {RunState.TEARING_DOWN, RunState.CANCELLED, RunState.COMPLETED, RunState.FAILED}
    ),
    RunState.TEARING_DOWN: frozenset(
        {RunState.PAUSED, RunState.COMPLETED, RunState.CANCELLED, RunState.FAILED}
    ),
    RunState.COMPLETED: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.FAILED: frozenset({RunState.PENDING}),
}
"""From each state, the states that may follow. A new local stack moves a run whose
stack was killed from `running` to `paused` without `pausing`, as does a run that no worker can continue; it
also does `tearing_down -> paused`, and such a run goes on with its teardown when it is resumed.
`failed -> pending` holds only for a run whose account is true."""

SENDING_STATES = frozenset({RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING})
"""States in which leases may be out; at most one run is in one of them."""
ACTIVE_STATES = SENDING_STATES | {RunState.TEARING_DOWN}
"""States in which workers have something to do. A run that was cancelled while another one had its turn tears
down after that one."""
FINAL_STATES = frozenset({RunState.COMPLETED, RunState.CANCELLED, RunState.FAILED})
"""States in which a run is over; of these, only one that has failed can be resumed."""
REST_STATES = FINAL_STATES | {RunState.PAUSED}
"""States in which a run sends nothing and waits for nothing."""


class TransitionError(Exception):
    """The error when a run cannot change from its state to the one that was asked for."""

    def __init__(self, run: str, current: RunState, wanted: RunState) -> None:
        super().__init__(f"run {run} is {current}, it cannot become {wanted}")


class TearingDownError(TransitionError):
    """The error when a run is to be paused that has ended but for its teardown."""

    def __init__(self, run: str) -> None:
        Exception.__init__(self, f"run {run} has ended but for its teardown; cancel it to wait no more")


def is_resumable(state: RunState, *, is_broken: bool) -> bool:
    """Whether a run at rest can go on; one is broken if its account did not balance."""
    return state == RunState.PAUSED or (state == RunState.FAILED and not is_broken)


def check_transition(run: str, current: RunState, wanted: RunState) -> None:
    """Raise `TransitionError` unless `wanted` may follow `current`."""
    if wanted not in TRANSITIONS[current]:
        raise TransitionError(run, current, wanted)

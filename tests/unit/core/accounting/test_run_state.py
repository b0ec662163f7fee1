import pytest

from oku_core.accounting.run_state import (
    ACTIVE_STATES,
    FINAL_STATES,
    SENDING_STATES,
    TRANSITIONS,
    RunState,
    TransitionError,
    check_transition,
    is_resumable,
)

PAIRS = [(current, wanted) for current in RunState for wanted in RunState]


def find_reachable(start: RunState) -> set[RunState]:
    """Every state that a run in `start` can reach."""
    found = {start}
    waiting = [start]
    while waiting:
        for state in TRANSITIONS[waiting.pop()] - found:
            found.add(state)
            waiting.append(state)
    return found


@pytest.mark.parametrize("state", RunState)
@pytest.mark.parametrize("is_broken", [False, True])
def test_what_rests_with_a_true_account_can_be_resumed(state: RunState, *, is_broken: bool) -> None:
    """A run whose account did not balance cannot, though it may have been paused before that was found."""
    resumable = {RunState.PAUSED} if is_broken else {RunState.PAUSED, RunState.FAILED}
    assert is_resumable(state, is_broken=is_broken) == (state in resumable)


def test_the_table_says_what_may_follow() -> None:
    """A transition in the table passes; the error of any other names the run and both states."""
    for current, wanted in PAIRS:
        if wanted in TRANSITIONS[current]:
            check_transition("r1", current, wanted)
        else:
            with pytest.raises(TransitionError, match=f"^run r1 is {current}, it cannot become {wanted}$"):
                check_transition("r1", current, wanted)
    # States that send are neither final nor waiting.
    assert {RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING} == SENDING_STATES
    assert SENDING_STATES | {RunState.TEARING_DOWN} == ACTIVE_STATES
    for state in ACTIVE_STATES:
        assert TRANSITIONS[state] - ACTIVE_STATES
    # A run ends completed cancelled or failed.
    assert {RunState.COMPLETED, RunState.CANCELLED, RunState.FAILED} == FINAL_STATES
    assert not TRANSITIONS[RunState.COMPLETED] | TRANSITIONS[RunState.CANCELLED]
    assert TRANSITIONS[RunState.FAILED] == {RunState.PENDING}
    # A paused run waits for its turn again.
    assert not TRANSITIONS[RunState.PAUSED] & SENDING_STATES
    assert RunState.PENDING in TRANSITIONS[RunState.PAUSED]
    # Nothing is sent any more once a run is torn down.
    assert TRANSITIONS[RunState.TEARING_DOWN] == FINAL_STATES | {RunState.PAUSED}
    # Every state can be reached and left. The table says for each state which states may follow.
    assert set(TRANSITIONS) == set(RunState)
    # A new run can come to every state. No state is unreachable.
    assert find_reachable(RunState.PENDING) == set(RunState)
    for state in RunState:
        # Every run can end. From any state, a run can be brought to a state in which it is over.
        assert find_reachable(state) & FINAL_STATES
    for state in RunState:
        # No state follows on itself. A second request to pause is not a transition.
        assert state not in TRANSITIONS[state]

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


def test_every_state_has_a_row() -> None:
    """The table says for each state which states may follow."""
    assert set(TRANSITIONS) == set(RunState)


def test_a_new_run_can_come_to_every_state() -> None:
    """No state is unreachable."""
    assert find_reachable(RunState.PENDING) == set(RunState)


@pytest.mark.parametrize("state", RunState)
def test_every_run_can_end(state: RunState) -> None:
    """From any state, a run can be brought to a state in which it is over."""
    assert find_reachable(state) & FINAL_STATES


def test_a_run_ends_completed_cancelled_or_failed() -> None:
    """These three are final; nothing follows the first two, and a failed run may be resumed."""
    assert {RunState.COMPLETED, RunState.CANCELLED, RunState.FAILED} == FINAL_STATES
    assert not TRANSITIONS[RunState.COMPLETED] | TRANSITIONS[RunState.CANCELLED]
    assert TRANSITIONS[RunState.FAILED] == {RunState.PENDING}


@pytest.mark.parametrize("state", RunState)
@pytest.mark.parametrize("is_broken", [False, True])
def test_what_rests_with_a_true_account_can_be_resumed(state: RunState, *, is_broken: bool) -> None:
    """A run whose account did not balance cannot, though it may have been paused before that was found."""
    resumable = {RunState.PAUSED} if is_broken else {RunState.PAUSED, RunState.FAILED}
    assert is_resumable(state, is_broken=is_broken) == (state in resumable)


def test_a_run_that_has_leases_out_must_not_be_pending_or_over() -> None:
    """The active states are neither final nor waiting, and each leads to an end of the activity."""
    assert {RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING} == SENDING_STATES
    assert SENDING_STATES | {RunState.TEARING_DOWN} == ACTIVE_STATES
    for state in ACTIVE_STATES:
        assert TRANSITIONS[state] - ACTIVE_STATES


def test_a_paused_run_waits_for_its_turn_again() -> None:
    """Resuming leads through `pending`, so that at most one run sends."""
    assert not TRANSITIONS[RunState.PAUSED] & SENDING_STATES
    assert RunState.PENDING in TRANSITIONS[RunState.PAUSED]


@pytest.mark.parametrize(("current", "wanted"), PAIRS)
def test_only_what_the_table_allows_may_follow(current: RunState, wanted: RunState) -> None:
    """A transition in the table passes; the error of any other names the run and both states."""
    if wanted in TRANSITIONS[current]:
        check_transition("r1", current, wanted)
    else:
        with pytest.raises(TransitionError, match=f"^run r1 is {current}, it cannot become {wanted}$"):
            check_transition("r1", current, wanted)


def test_nothing_is_sent_any_more_once_a_run_is_torn_down() -> None:
    """Its teardown comes after its last request; an interrupted one goes on when the run is resumed."""
    assert TRANSITIONS[RunState.TEARING_DOWN] == FINAL_STATES | {RunState.PAUSED}


@pytest.mark.parametrize("state", RunState)
def test_no_state_follows_on_itself(state: RunState) -> None:
    """A second request to pause is not a transition."""
    assert state not in TRANSITIONS[state]

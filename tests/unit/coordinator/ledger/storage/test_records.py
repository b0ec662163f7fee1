from typing import Any

import pytest

from oku_coordinator.ledger.storage.records import BreachError, RunRecord
from oku_core.accounting.interval import ConservationError
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec


def build_record(**changes: Any) -> RunRecord:
    """A run, changed as wanted."""
    values: dict[str, Any] = {
        "run": "r1", "name": "", "requests": 1, "engine": "aiohttp", "target": "",
        "spec": Spec(), "state": RunState.RUNNING, "reason": "", "created_at": 0.0,
        "started_at": None, "ended_at": None, "active_s": 0.0, "active_since": None, "periods": 0,
        "last_checkpoint_at": None, "resent_at_most": 0, "served": None, "watched_s": 0.0,
        "underfilled_s": 0.0, "outcomes": build_no_counts(),
        "is_broken": False, "is_published": False, "number": 1,
    }  # fmt: skip
    return RunRecord(**values | changes)


@pytest.mark.parametrize(
    ("active_s", "active_since", "now", "measured"),
    [
        (0.0, None, 9.0, 0.0),
        (5.0, None, 9.0, 5.0),
        (5.0, 7.0, 9.0, 7.0),
        (5.0, 0.0, 9.0, 14.0),
        (5.0, 9.5, 9.0, 5.0),
    ],
)
def test_activity_is_what_closed_periods_sum_to_and_the_open_one_so_far(
    active_s: float, active_since: float | None, now: float, measured: float
) -> None:
    """A period may open at 0 s, and a clock may be set back."""
    assert build_record(active_s=active_s, active_since=active_since).measure_active_s(now) == measured


@pytest.mark.parametrize("state", RunState)
def test_a_run_rests_when_it_sends_nothing_and_waits_for_nothing(state: RunState) -> None:
    """That is when it is paused or over."""
    resting = {RunState.PAUSED, RunState.COMPLETED, RunState.CANCELLED, RunState.FAILED}
    assert build_record(state=state).is_at_rest == (state in resting)


def test_a_breach_names_its_run() -> None:
    """It is a breach of the law of conservation."""
    error = BreachError("r1", "10 are not 11")
    assert isinstance(error, ConservationError)
    assert (error.run, error.detail) == ("r1", "10 are not 11")
    assert str(error) == "run r1 does not balance: 10 are not 11"

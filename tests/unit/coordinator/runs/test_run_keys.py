import re

import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.runs.retention import (
    KeyTakenError,
    RunDeletedError,
    build_end,
    delete_run,
    find_submitted,
)
from oku_core.accounting.run_state import RunState
from oku_core.json_reader import JsonDecoder
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary

SPEC, OTHER = Spec(requests=5), Spec(requests=6, workers=2)
SUMMARY: JsonDecoder[Summary] = JsonDecoder(Summary)


def test_a_key_finds_its_run_in_every_state(ledger: Ledger) -> None:
    """What is to be done with it is for the caller to decide."""
    assert find_submitted(ledger, "k1", SPEC) is None
    change(ledger, create_run, "r1", SPEC, 1.0, "k1")
    for state in (None, RunState.PAUSED, RunState.FAILED):
        if state is not None:
            change(ledger, change_state, "r1", state, 2.0)
        assert find_submitted(ledger, "k1", SPEC) == read(ledger, fetch_run, "r1")
    assert find_submitted(ledger, "k2", SPEC) is None


async def test_a_key_with_another_spec_is_refused_in_one_line(ledger: Ledger) -> None:
    """The line names what differs, as long as the spec of the run is there."""
    change(ledger, create_run, "r1", SPEC, 1.0, "k1")
    refusal = "key k1 belongs to run r1, which has another spec"
    with pytest.raises(KeyTakenError, match=re.escape(f"{refusal} (it differs in requests, workers)")):
        find_submitted(ledger, "k1", OTHER)
    change(ledger, change_state, "r1", RunState.CANCELLED, 2.0)
    await delete_run(ledger, "r1", 3.0)
    with pytest.raises(KeyTakenError, match=f"{refusal}$"):
        find_submitted(ledger, "k1", OTHER)


async def test_a_deleted_run_is_found_as_it_stood(ledger: Ledger) -> None:
    """Until its key is too old."""
    for run, state in (("r1", RunState.CANCELLED), ("r2", RunState.PAUSED)):
        change(ledger, create_run, run, SPEC, 1.0, f"key of {run}")
        change(ledger, change_state, run, state, 2.0, "somebody asked for it")
        await delete_run(ledger, run, 10.0)
        with pytest.raises(RunDeletedError, match=f"run {run}, which has the key .*, was deleted") as found:
            find_submitted(ledger, f"key of {run}", SPEC, deleted_since=10.0)
        kept = SUMMARY.decode(found.value.summary)
        assert (kept.run, kept.state, kept.reason) == (run, state, "somebody asked for it")
        assert find_submitted(ledger, f"key of {run}", SPEC, deleted_since=10.1) is None


def test_nothing_is_kept_of_a_run_without_a_key(ledger: Ledger) -> None:
    """It is gone once it is deleted."""
    change(ledger, create_run, "r1", SPEC, 1.0)
    assert build_end(ledger, "r1", 2.0) is None

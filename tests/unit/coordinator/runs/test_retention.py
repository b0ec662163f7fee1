import functools
import os
import re
from pathlib import Path

import msgspec
import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.deletion_table import begin_deletion, find_deletion
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_coordinator.ledger.tables.submission_table import fetch_key
from oku_coordinator.runs.retention import (
    KeyTakenError,
    Retention,
    RunDeletedError,
    build_end,
    delete_run,
    find_submitted,
)
from oku_coordinator.settings import RetentionRule
from oku_core.accounting.run_state import RunState
from oku_core.json_reader import JsonDecoder
from oku_core.spec.spec import Engine, Spec
from oku_core.summary.summary import Summary


def end_run(ledger: Ledger, run: str, now: float) -> None:
    """Make a run that ended at this time."""
    change(ledger, create_run, run, Spec(requests=1), now)
    change(ledger, change_state, run, RunState.CANCELLED, now)


def list_runs(ledger: Ledger) -> list[str]:
    """The ids of all runs, newest first."""
    return [listed.run for listed in read(ledger, fetch_runs)]


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (RetentionRule(), ["r4", "r3", "r2", "r1"]),
        (RetentionRule(keep_runs=2), ["r4", "r3"]),
        (RetentionRule(keep_runs=0), []),
        (RetentionRule(keep_for_s=75.0), ["r4", "r3"]),
        (RetentionRule(keep_runs=1, keep_for_s=75.0), ["r4"]),
    ],
)
async def test_runs_are_kept_as_the_rule_says(
    ledger: Ledger, tmp_path: Path, rule: RetentionRule, kept: list[str]
) -> None:
    """The rule bounds their number and their age; without a rule all of them are kept for ever."""
    for number in range(1, 5):
        end_run(ledger, f"r{number}", 10.0 * number)
    retention = Retention(ledger, tmp_path, rule, lambda: 100.0)
    await retention.delete_surplus()
    assert list_runs(ledger) == kept


async def test_what_is_left_of_deleted_runs_is_removed(
    ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The pages of their reports go, too; those of others stay."""
    caplog.set_level("INFO")
    for now, run in enumerate(("r1", "r2"), 1):
        end_run(ledger, run, float(now))
        (tmp_path / f"{run}.html").write_text("page")
    end_run(ledger, "r3", 3.0)
    retention = Retention(ledger, tmp_path, RetentionRule(keep_runs=2), lambda: 100.0)
    await retention.delete_surplus()
    assert "run r1 is deleted" in caplog.text
    await retention.clear()
    assert read(ledger, find_deletion) is None
    assert {name for name in os.listdir(tmp_path) if name.endswith("html")} == {"r2.html"}  # noqa: PTH208  # no more to it
    await retention.clear()


async def test_keys_are_kept_longer_than_their_runs(ledger: Ledger, tmp_path: Path) -> None:
    """By default for 30 days after the deletion; a run that is there keeps its key."""
    for number in (1, 2, 3):
        change(ledger, create_run, f"r{number}", Spec(requests=1), 0.0, f"k{number}")
        change(ledger, change_state, f"r{number}", RunState.CANCELLED, float(number))
    days = 86_400.0
    # When the rule is applied, how many runs it keeps, and the keys that are known after that.
    steps = (
        (10.0, 2, ["k1", "k2", "k3"]),
        (20.0, 1, ["k1", "k2", "k3"]),
        (10.0 + 30 * days, 1, ["k1", "k2", "k3"]),
        (20.0 + 30 * days, 1, ["k2", "k3"]),
        (99.0 + 30 * days, 1, ["k3"]),
    )
    for now, keep_runs, known in steps:
        rule = RetentionRule(keep_runs=keep_runs)
        retention = Retention(ledger, tmp_path, rule, functools.partial(float, now))
        await retention.delete_surplus()
        retention.forget_keys()
        assert [key for key in ("k1", "k2", "k3") if read(ledger, fetch_key, key)] == known, now
    assert list_runs(ledger) == ["r3"]


async def test_a_run_that_is_deleted_or_resumed_meanwhile_is_left_alone(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turn between two deletions, each of which may have a summary to make."""
    for number in range(1, 5):
        change(ledger, create_run, f"r{number}", Spec(requests=1), 1.0)
        change(ledger, change_state, f"r{number}", RunState.FAILED, 1.0 + number)

    async def turn(_: float) -> None:
        if len(list_runs(ledger)) == 3:
            change(ledger, change_state, "r2", RunState.PENDING, 9.0)
            change(ledger, begin_deletion, "r3")

    monkeypatch.setattr("oku_coordinator.runs.retention.sleep", turn)
    await Retention(ledger, tmp_path, RetentionRule(keep_runs=0), lambda: 10.0).delete_surplus()
    assert list_runs(ledger) == ["r2"]


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
    # The engine that was chosen for the run is no difference. The same engine, named, is one.
    named = msgspec.structs.replace(SPEC, engine=Engine.HTTPTOOLS)
    with pytest.raises(KeyTakenError, match=re.escape(f"{refusal} (it differs in engine)")):
        find_submitted(ledger, "k1", named)
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

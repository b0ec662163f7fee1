"""The clock of a machine is set while a run goes on: by an hour, forward and back."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.coordinators.transactions import read
from tests.kit.faults.shifted_clock import ShiftedClocks
from tests.kit.loki.loki import Loki
from tests.kit.loki.loki_account import assert_published, assert_ticks_agree, fetch
from tests.kit.runs.account import assert_completed, list_flags
from tests.kit.runs.local_run import LocalRun, Start

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_core.spec.spec import Engine

HOUR_S = 3600
pytestmark = pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShiftedClocks:
    """Clocks that the test may set."""
    clocks = ShiftedClocks(tmp_path, "coordinator", "worker", "server")
    clocks.install(monkeypatch)
    return clocks


@pytest.fixture
def loki(tmp_path: Path) -> Iterator[Loki]:
    """A Loki, whose clock is right."""
    with Loki(tmp_path / "loki") as started:
        yield started


def assert_times_are_right(run: LocalRun, began: float) -> None:
    """The run lasted as long as somebody with a watch says, in its summary and in its series."""
    summary = run.finish()
    took_s = time.monotonic() - began
    assert_completed(summary)
    assert summary["servers"] is not None
    assert summary["resent_at_most"] == 0
    assert 0 < summary["active_s"] <= took_s + 1
    ledger = Ledger(run.data_dir / "ledger.sqlite3", read_only=True)
    try:
        history = read(ledger, fetch_history, summary["run"])
    finally:
        ledger.close()
    ats = [sample.at for sample in history.samples]
    assert ats == sorted(ats)
    assert ats[-1] - ats[0] <= took_s + 1
    assert sum(sample.seconds for sample in history.samples) == pytest.approx(summary["active_s"], abs=2.5)


@pytest.mark.parametrize("role", ["coordinator", "worker", "server"])
def test_a_clock_that_is_set_forward_and_back_changes_no_figure(
    start_load: Start, clocks: ShiftedClocks, role: str
) -> None:
    """The run takes as long as it does, nothing is sent twice, `served` is known, and the summary says so."""
    began = time.monotonic()
    run = start_load(12_000, "--range-size", "500")
    for accounted, ahead_s in ((2_000, HOUR_S), (5_000, 0), (8_000, -HOUR_S)):
        run.wait_for_accounted(accounted)
        clocks.set(role, ahead_s)
    assert_times_are_right(run, began)
    assert ("clock_set" in list_flags(run.finish())) == (role != "server")


@pytest.mark.parametrize("steps", [(HOUR_S, 0), (-HOUR_S, 0), (-2 * HOUR_S,)], ids=["forward", "back", "far"])
def test_lines_reach_loki_whatever_the_coordinators_clock_is_set_to(
    start_load: Start, clocks: ShiftedClocks, loki: Loki, steps: tuple[int, ...]
) -> None:
    """A clock that was wrong and is right again leaves no line behind, and no line is there twice."""
    began = time.monotonic()
    run = start_load(10_000, "--range-size", "250", "--loki", loki.url)
    for accounted, ahead_s in zip((2_000, 5_000), steps, strict=False):
        run.wait_for_accounted(accounted)
        clocks.set("coordinator", ahead_s)
    assert_times_are_right(run, began)
    summary = run.finish()
    assert_published(loki, summary)
    assert_ticks_agree(loki, summary)
    # Set back, the clock puts later events before earlier ones.
    events = [event["type"] for event in fetch(loki, summary["run"], "event")]
    assert events.count("clock_set") == len(steps)
    assert events.count("state") == 3
    assert len(fetch(loki, summary["run"], "tick")) >= summary["active_s"] - 2

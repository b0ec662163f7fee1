import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history, keep_second
from oku_coordinator.ledger.rules.leases.waves import start_clock
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_core.accounting.run_state import RunState
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.spec.parser import Source, parse_spec

BEGIN = 1_800_000_000


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger with a published run of 130 requests in two phases."""
    spec = parse_spec(Source(None, {"url": "http://h/", "stages": ["ramp=4s:0..20/s", "soak=4500ms:20/s"]}))
    with_run = open_ledger(path, publishes=True)
    change(with_run, create_run, "r1", spec, BEGIN)
    change(with_run, change_state, "r1", RunState.RUNNING, BEGIN)
    yield with_run
    with_run.close()


def tick(ledger: Ledger, at: float, settled_to: float = -math.inf) -> None:
    """A second of the run, which nothing was counted in, with a plan as it was seen live."""
    sample = Sample(
        at=BEGIN + at, seconds=1.0, requests_total=130, accounted=0, leased=130, pending=0, done=0,
        resent_at_most=0, active_s=at, in_flight=5, workers=1, requests_planned=99, phase="live",
    )  # fmt: skip
    change(ledger, keep_second, "r1", sample, state="running", settled_to=BEGIN + settled_to)


def take(ledger: Ledger) -> list[dict[str, Any]]:
    """The ticks in the outbox."""
    lines = change(ledger, fetch_batch, 10_000, 10**9, BEGIN + 100)
    return [json.loads(line.text) for line in lines if line.kind == LineKind.TICK]


def test_the_plan_of_a_sample_is_that_of_its_whole_seconds(ledger: Ledger) -> None:
    """Its seconds sum to all requests, wherever between whole seconds the ticks and the start were."""
    change(ledger, start_clock, "r1", BEGIN + 0.5, 0.0)
    for at in range(1, 11):
        tick(ledger, at + 0.004)
    samples = read(ledger, fetch_history, "r1").samples
    assert [sample.requests_planned for sample in samples] == [1, 5, 10, 15, 19, 20, 20, 20, 20, 0]
    assert sum(sample.requests_planned or 0 for sample in samples) == 130
    assert [sample.phase for sample in samples] == [*["ramp"] * 5, *["soak"] * 5]


def test_where_the_clock_was_set_back_nothing_is_planned_twice(ledger: Ledger) -> None:
    """A run that goes on repeats what was in flight, which its plan has already counted."""
    change(ledger, start_clock, "r1", BEGIN, 0.0)
    change(ledger, change_state, "r1", RunState.PAUSING, BEGIN + 5.5)  # so that the clock stops at 6
    change(ledger, change_state, "r1", RunState.PENDING, BEGIN + 9)
    change(ledger, change_state, "r1", RunState.RUNNING, BEGIN + 9)
    change(ledger, start_clock, "r1", BEGIN + 10, 4.0)
    for at in range(5, 16):
        tick(ledger, at + 0.004)
    samples = read(ledger, fetch_history, "r1").samples
    assert [sample.requests_planned for sample in samples] == [20, 20, 0, 0, 0, 0, 0, 0, 20, 20, 10]
    assert [sample.phase for sample in samples] == ["soak"] * 11


def test_lines_have_the_plan_of_their_seconds(ledger: Ledger) -> None:
    """As samples that were kept have; a pause has no plan."""
    change(ledger, start_clock, "r1", BEGIN, 4.0)
    tick(ledger, 1.002)
    tick(ledger, 2.002, 2.002)
    assert [(line["requests_planned"], line["phase"]) for line in take(ledger)] == [(20, "soak")] * 2


def test_a_run_without_a_rate_has_no_plan(ledger: Ledger) -> None:
    """Neither in its samples nor in its lines."""
    change(ledger, create_run, "r2", parse_spec(Source(None, {"url": "http://h/"})), BEGIN)
    sample = Sample(
        at=BEGIN + 1.0, seconds=1.0, requests_total=1, accounted=0, leased=0, pending=1, done=0,
        resent_at_most=0, in_flight=0, workers=0,
    )  # fmt: skip
    change(ledger, keep_second, "r2", sample, state="running", settled_to=math.inf)
    (kept,) = read(ledger, fetch_history, "r2").samples
    assert (kept.requests_planned, kept.phase) == (None, "")
    (line,) = take(ledger)
    assert {"requests_planned", "phase", "clock_s", "length_s", "unused"}.isdisjoint(line)


def test_a_run_that_ends_after_a_time_or_a_number_says_what_is_unused(ledger: Ledger) -> None:
    """Its clock says how far it is."""
    spec = parse_spec(Source(None, {"url": "http://h/", "duration": "10s", "requests": 100, "warm-up": "2s"}))
    change(ledger, create_run, "r3", spec, BEGIN)
    change(ledger, change_state, "r1", RunState.CANCELLING, BEGIN)
    change(ledger, change_state, "r3", RunState.RUNNING, BEGIN)
    change(ledger, start_clock, "r3", BEGIN, 0.0)
    sample = Sample(
        at=BEGIN + 3.001, seconds=1.0, requests_total=80, accounted=80, leased=0, pending=0, done=0,
        resent_at_most=0, in_flight=0, workers=0,
    )  # fmt: skip
    change(ledger, keep_second, "r3", sample, state="running", settled_to=math.inf)
    (line,) = take(ledger)
    assert (line["clock_s"], line["length_s"], line["unused"]) == (3.001, 10.0, 20)
    assert (line["requests_total"], line["phase"]) == (80, "main")
    assert "requests_planned" not in line

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.kit.checkpoints import change_checkpoint
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history, keep_second, put_summary
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.outbox_table import OutboxLine, fetch_batch
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, Part
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.spec.description import describe_target
from oku_core.spec.spec import Spec

BEGIN = 1_800_000_000


@pytest.fixture
def ledger(path: Path) -> Any:
    """A ledger with a run that is published, and began at `BEGIN`."""
    with_run = open_ledger(path, publishes=True)
    change(with_run, create_run, "r1", Spec(requests=1000), BEGIN)
    change(with_run, change_state, "r1", RunState.RUNNING, BEGIN)
    yield with_run
    with_run.close()


@pytest.fixture
def lease(ledger: Ledger) -> LeaseRecord:
    """A lease of all requests of the run."""
    return deal_lease(ledger, "r1", 1000, BEGIN)


def build_growing(lease: LeaseRecord, sequence: int, *seconds: int, is_final: bool = False) -> Checkpoint:
    """A checkpoint by which so many requests have ended in each second since `BEGIN`."""
    covered = sum(seconds)
    latency = Histogram()
    for _ in range(covered):
        latency.record(1000)
    part = Part(
        outcomes=make_counts(covered),
        statuses={"200": covered},
        times={Time.LATENCY: latency.build_latency()},
        per_second={BEGIN + place: make_counts(ok) for place, ok in enumerate(seconds) if ok},
    )
    checkpoint = build_checkpoint(lease, covered)
    return change_checkpoint(
        checkpoint, sequence=sequence, parts=[part], is_final=is_final, started_at=BEGIN + 0.1
    )


def report(ledger: Ledger, lease: LeaseRecord, now: float, *args: int, is_final: bool = False) -> None:
    """Its worker reports at `now` s after `BEGIN`."""
    checkpoint = build_growing(lease, *args, is_final=is_final)
    assert apply_batches(ledger, [build_batch(lease, checkpoint)], BEGIN + now)[0] in {"accounted", "closed"}


def tick(ledger: Ledger, at: float, settled_to: float) -> None:
    """A second of the run, kept as the recorder does, and all that is settled by then."""
    sample = Sample(
        at=BEGIN + at, seconds=1.0, requests_total=1000, accounted=0, leased=1000, pending=0, done=0,
        resent_at_most=0, active_s=at, in_flight=5, workers=1,
    )  # fmt: skip
    change(ledger, keep_second, "r1", sample, state="running", settled_to=BEGIN + settled_to)


def take(ledger: Ledger) -> list[tuple[OutboxLine, dict[str, Any]]]:
    """The ticks in the outbox; it is empty afterwards."""
    lines = change(ledger, fetch_batch, 10_000, 10**9, BEGIN + 100)
    change(ledger, outbox_table.remove, lines)
    return [(line, json.loads(line.text)) for line in lines if line.kind == LineKind.TICK]


def count(lines: Sequence[tuple[OutboxLine, dict[str, Any]]]) -> list[tuple[float, int, float]]:
    """When lines are, how many requests they count, and how many seconds."""
    return [
        (round((line.at_ns - BEGIN * 10**9) / 10**9, 3), fields["requests_ended"], fields["seconds"])
        for line, fields in lines
    ]


def test_a_tick_has_what_the_checkpoints_say_of_its_second(ledger: Ledger, lease: LeaseRecord) -> None:
    """It is written when its second is settled, with the figures that were seen live."""
    tick(ledger, 1.002, 0.5)
    tick(ledger, 2.002, 1.5)
    report(ledger, lease, 2.5, 1, 10, 20)
    tick(ledger, 3.002, 2.4)
    lines = take(ledger)
    assert count(lines) == [(1.002, 0, 1.0), (2.002, 20, 1.0), (1.0, 10, 0)]
    settled = lines[1][1]
    assert settled | {"state": "running", "ok": 20, "rate_rps": 20.0, "in_flight": 5} == settled
    record = read(ledger, fetch_run, "r1")
    assert settled | {"target": describe_target(record.spec), "load": record.load} == settled


def test_counts_that_come_late_are_added(ledger: Ledger, lease: LeaseRecord) -> None:
    """Each has a line of its own, at its second, that no other line can be taken for."""
    for at in (1.002, 2.002, 3.002):
        tick(ledger, at, at)
    report(ledger, lease, 3.5, 1, 10, 20)
    tick(ledger, 4.002, 3.5)
    report(ledger, lease, 4.5, 2, 11, 20)
    tick(ledger, 5.002, 4.5)
    report(ledger, lease, 5.5, 3, 12, 20)
    tick(ledger, 6.002, 5.5)
    lines = take(ledger)
    assert [fields for fields in count(lines) if not fields[2]] == [
        (1.0, 10, 0), (2.0, 20, 0), (1.0, 1, 0), (1.0, 1, 0),
    ]  # fmt: skip
    assert len({line.at_ns for line, _ in lines}) == len(lines)
    late = [fields for _, fields in lines if not fields["seconds"]]
    assert [fields["active_s"] for fields in late] == [0.0, 1.0, 0.0, 0.0]
    assert "state" not in late[0]


def test_a_second_without_a_sample_has_its_length_once(ledger: Ledger, lease: LeaseRecord) -> None:
    """Nobody was there to see it: its first line stands for it."""
    tick(ledger, 1.0, 0.5)
    report(ledger, lease, 6.0, 1, 1, 2, 3, 4)
    tick(ledger, 7.0, 7.0)
    report(ledger, lease, 7.5, 2, 1, 2, 3, 5)
    tick(ledger, 8.0, 8.0)
    assert count(take(ledger)) == [
        (1.0, 1, 1.0), (7.0, 0, 1.0), (2.0, 2, 1), (3.0, 3, 1), (4.0, 4, 1), (8.0, 0, 1.0), (4.0, 1, 0),
    ]  # fmt: skip


def test_nothing_is_left_at_rest(ledger: Ledger, lease: LeaseRecord) -> None:
    """The summary brings what the coordinator that made the last ticks could not put there."""
    tick(ledger, 1.0, 0.5)
    report(ledger, lease, 1.2, 1, 400, 600, is_final=True)
    assert read(ledger, fetch_run, "r1").state == RunState.COMPLETED
    assert change(ledger, put_summary, "r1", {}, [], BEGIN + 3)
    assert sum(fields["requests_ended"] for _, fields in take(ledger)) == 1000
    assert not change(ledger, put_summary, "r1", {}, [], BEGIN + 4)


def test_a_run_that_is_published_later_begins_then(path: Path) -> None:
    """What was counted while there was no Loki is in no line, as its ranges are in none."""
    ledger = Ledger(path)
    change(ledger, create_run, "r1", Spec(requests=1000), BEGIN)
    change(ledger, change_state, "r1", RunState.RUNNING, BEGIN)
    lease = deal_lease(ledger, "r1", 500, BEGIN)
    report(ledger, lease, 1.5, 1, 200, 300, is_final=True)
    tick(ledger, 1.0, 1.0)
    tick(ledger, 2.0, 2.0)
    change(ledger, change_state, "r1", RunState.PAUSING, BEGIN + 3)
    tick(ledger, 3.0, math.inf)
    ledger.close()
    again = Ledger(path, publishes=True)
    change(again, change_state, "r1", RunState.PENDING, BEGIN + 10)
    change(again, change_state, "r1", RunState.RUNNING, BEGIN + 10)
    tick(again, 12.0, 12.0)
    lines = take(again)
    samples = read(again, fetch_history, "r1").samples
    again.close()
    assert count(lines) == [(12.0, 0, 1.0)]
    assert [sample.requests_ended for sample in samples] == [200, 300, 0, 0]


def test_merged_seconds_stay_those_of_their_samples(
    ledger: Ledger, lease: LeaseRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long run has fewer and longer samples, each with the counts of its own seconds."""
    monkeypatch.setattr("oku_coordinator.ledger.tables.history_table.MOST_SAMPLES", 40)
    counts = [place + 1 for place in range(30)]
    for at in range(1, 31):
        tick(ledger, at + 0.003, at)
    report(ledger, lease, 31, 1, *counts)
    for at in range(31, 60):
        tick(ledger, at + 0.003, at)
    samples = read(ledger, fetch_history, "r1").samples
    assert len(samples) < 45
    ends = [sample.at for sample in samples]
    assert ends == sorted(ends)
    for sample in samples:
        end = round(sample.at) - BEGIN
        own = range(end - round(sample.seconds), end)
        assert sample.requests_ended == sum(counts[place] for place in own if place < len(counts))
    assert sum(fields["requests_ended"] for _, fields in take(ledger)) == sum(counts)

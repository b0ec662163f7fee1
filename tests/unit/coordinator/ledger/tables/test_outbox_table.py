import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch, apply_batches, build_part
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import keep_events, keep_second, put_summary
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.outbox_table import OutboxLine, drop_oldest, fetch_batch
from oku_coordinator.ledger.tables.run_table import list_due_summaries
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event, EventType
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec

HOUR_S = 3600.0


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger whose runs are published."""
    ledger = open_ledger(path, publishes=True)
    yield ledger
    ledger.close()


def take(ledger: Ledger, lines: int = 1000, size: int = 10**9, now: float = 10.0) -> list[OutboxLine]:
    """Take the oldest lines."""
    return change(ledger, fetch_batch, lines, size, now)


def note(ledger: Ledger, *times: float, run: str = "r1") -> None:
    """Note events at these times."""
    change(ledger, keep_events, run, [Event(at=at, type=EventType.STATE, text="x" * 10) for at in times])


def keep(ledger: Ledger, at: float, *lines: dict[str, Any]) -> None:
    """Keep a sample with lines of ticks."""
    sample = Sample(
        at=at, seconds=1.0, requests_total=100, accounted=0, leased=0, pending=100, done=0,
        resent_at_most=0, in_flight=0, workers=1,
    )  # fmt: skip
    change(ledger, keep_second, "r1", sample)
    change(ledger, outbox_table.put, "r1", LineKind.LATENCY, at, lines)


def empty(ledger: Ledger) -> None:
    """Take and remove all lines."""
    change(ledger, outbox_table.remove, take(ledger))


def test_a_closed_lease_enters_the_outbox_with_the_account(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """It makes a line for its range, one for each status, and one for the state that follows, all at one
    time.
    """
    lease = deal(100)
    empty(ledger)
    part = msgspec.structs.replace(build_part(100), statuses={"200": 90, "201": 10})
    apply([make_batch(lease, parts=[part])], 5.0)
    lines = take(ledger)
    assert [line.kind for line in lines] == [LineKind.RANGE, LineKind.STATUS, LineKind.STATUS, LineKind.EVENT]
    assert json.loads(lines[0].text)["requests"] == 100
    assert [line.at_ns for line in lines] == [5 * 10**9, 5 * 10**9, 5 * 10**9 + 1, 5 * 10**9]


def test_what_does_not_count_is_not_published(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """A checkpoint that comes twice makes no line, nor does a lease that covers nothing."""
    first, second = deal(10), deal(10)
    apply([make_batch(first)], 5.0)
    empty(ledger)
    apply([make_batch(first), make_batch(second, done=0)], 6.0)
    assert take(ledger) == []


def test_nothing_is_kept_without_a_loki(
    path: Path, deal: Deal, make_batch: MakeBatch, apply: Apply, ledger: Ledger
) -> None:
    """Runs of a coordinator without Loki have no lines, and nor have runs that it resumes."""
    lease = deal(10)
    ledger.close()
    other = Ledger(path)
    before = read(other, outbox_table.measure).lines
    change(other, create_run, "r2", Spec(requests=10), 0.0)
    change(other, change_state, "r2", RunState.RUNNING, 1.0)
    assert read(other, outbox_table.measure).lines == before
    change(other, change_state, "r1", RunState.PAUSING, 2.0)
    apply_batches(other, [make_batch(lease)], 2.5)
    paused = read(other, outbox_table.measure).lines
    assert paused > before
    change(other, change_state, "r1", RunState.PENDING, 3.0)
    change(other, change_state, "r1", RunState.CANCELLED, 4.0)
    assert read(other, outbox_table.measure).lines == paused
    other.close()


def test_a_line_stays_until_it_is_removed(ledger: Ledger) -> None:
    """Whoever takes lines again gets the same ones, byte for byte."""
    change(ledger, create_run, "r1", Spec(requests=10, name="shop"), 0.0)
    first = take(ledger)
    assert take(ledger) == first
    assert first[0].name == "shop"
    change(ledger, outbox_table.remove, first)
    assert take(ledger) == []
    assert (read(ledger, outbox_table.measure).lines, read(ledger, outbox_table.measure).bytes) == (0, 0)


def test_batches_are_bounded_in_lines_and_bytes(ledger: Ledger) -> None:
    """A line that is larger than the bound goes alone."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    empty(ledger)
    keep(ledger, 1.0, *({"a": "x" * 100} for _ in range(10)))
    assert len(take(ledger, lines=3)) == 3
    assert len(take(ledger, size=250)) == 2
    assert len(take(ledger, size=1)) == 1


def test_lines_of_more_than_an_hour_ago_are_late(ledger: Ledger) -> None:
    """That is decided when they are first taken, so that they stay the same lines."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    empty(ledger)
    note(ledger, 0.0, 100.0)
    now = HOUR_S + 50
    assert [line.is_late for line in take(ledger, now=now)] == [True, False]
    note(ledger, 200.0)
    assert [line.is_late for line in take(ledger, now=now + HOUR_S)] == [True, False, True]


def test_a_full_outbox_drops_the_oldest_of_what_may_be_lost(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """It never drops ranges, statuses, events or summaries, and says how many lines each run has lost."""
    lease = deal(10)
    apply([make_batch(lease)], 2.0)
    lasting = len(take(ledger))
    for at in range(20):
        keep(ledger, float(at), {"a": "x" * 1000, "at": at})
    size = read(ledger, outbox_table.measure)
    assert size.lines == lasting + 20
    assert change(ledger, drop_oldest, size.bytes) == {}
    assert change(ledger, drop_oldest, size.bytes - 5000) == {"r1": 5}
    kept = take(ledger)
    assert [json.loads(line.text)["at"] for line in kept if line.kind == LineKind.LATENCY] == list(
        range(5, 20)
    )
    assert change(ledger, drop_oldest, 0) == {"r1": 15}
    assert len(take(ledger)) == lasting
    assert change(ledger, drop_oldest, 0) == {}


def test_lines_that_were_dropped_while_they_were_sent_are_removed_once(ledger: Ledger) -> None:
    """The size of the outbox stays right."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    empty(ledger)
    keep(ledger, 1.0, {"a": 1}, {"a": 2})
    sent = take(ledger)
    change(ledger, drop_oldest, 0)
    change(ledger, outbox_table.remove, sent)
    assert (read(ledger, outbox_table.measure).lines, read(ledger, outbox_table.measure).bytes) == (0, 0)


def test_the_summary_is_put_once_for_each_rest(ledger: Ledger) -> None:
    """A run at rest owes a summary until it is there; a resumed one owes another."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    assert read(ledger, list_due_summaries) == []
    change(ledger, change_state, "r1", RunState.PAUSED, 1.0)
    assert read(ledger, list_due_summaries) == ["r1"]
    empty(ledger)
    flag = Event(at=2.0, type=EventType.VALIDITY, text="resent")
    assert change(ledger, put_summary, "r1", {"run": "r1"}, [flag], 2.0)
    assert not change(ledger, put_summary, "r1", {"run": "r1"}, [flag], 2.0)
    assert [line.kind for line in take(ledger)] == [LineKind.SUMMARY, LineKind.EVENT]
    assert read(ledger, list_due_summaries) == []
    change(ledger, change_state, "r1", RunState.PENDING, 3.0)
    change(ledger, change_state, "r1", RunState.CANCELLED, 4.0)
    assert read(ledger, list_due_summaries) == ["r1"]


def begin(ledger: Ledger) -> None:
    """Begin a run and remove its first lines."""
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    empty(ledger)


def test_lines_get_the_time_of_the_wall_clock_when_they_are_first_taken(ledger: Ledger) -> None:
    """Before that their times are of a clock that does not jump; after it they stay, so that no line is there
    twice.
    """
    begin(ledger)
    note(ledger, 100.0, 101.0)
    first = change(ledger, fetch_batch, 1000, 10**9, 102.0, wall_ahead_s=3600.0)
    assert [line.at_ns for line in first] == [3700 * 10**9, 3701 * 10**9]
    again = change(ledger, fetch_batch, 1000, 10**9, 103.0, wall_ahead_s=3660.0)
    assert [line.at_ns for line in again] == [line.at_ns for line in first]


def test_a_time_that_is_still_to_come_is_given_anew(ledger: Ledger) -> None:
    """Loki would refuse lines from before the clock was set back, and takes them with the new time."""
    begin(ledger)
    note(ledger, 5000.0, 5001.0)
    change(ledger, fetch_batch, 1000, 10**9, 5001.0)
    lines = change(ledger, fetch_batch, 1000, 10**9, 5002.0, wall_ahead_s=-3600.0)
    assert [line.at_ns for line in lines] == [1400 * 10**9, 1401 * 10**9]


def test_lines_of_a_process_whose_clock_was_ahead_have_the_time_of_now(ledger: Ledger) -> None:
    """Nobody knows any more how far ahead it was."""
    begin(ledger)
    note(ledger, 5000.0, 5001.0)
    lines = change(ledger, fetch_batch, 1000, 10**9, 1402.0)
    assert [line.at_ns for line in lines] == [1402 * 10**9, 1402 * 10**9 + 1]


def test_after_a_long_step_back_lines_go_where_loki_takes_them(ledger: Ledger) -> None:
    """Loki refuses lines that are an hour older than the newest of their stream, so late lines have a stream
    of their own.
    """
    begin(ledger)
    note(ledger, 10_000.0)
    assert not change(ledger, fetch_batch, 1000, 10**9, 10_000.0)[0].is_late
    empty(ledger)
    note(ledger, 10_001.0)
    [line] = change(ledger, fetch_batch, 1000, 10**9, 10_002.0, wall_ahead_s=-2 * HOUR_S)
    assert line.is_late
    empty(ledger)
    note(ledger, 10_003.0)
    assert not change(ledger, fetch_batch, 1000, 10**9, 10_003.0)[0].is_late


def test_a_new_process_with_its_clock_set_back_does_not_wait_for_the_old_time(
    ledger: Ledger,
) -> None:
    """Its lines get the time of now, not one after the last line of the process before it."""
    begin(ledger)
    note(ledger, 10_000.0)
    empty(ledger)
    note(ledger, 6_400.0, 6_400.0)
    assert [line.at_ns for line in take(ledger, now=6_401.0)] == [6400 * 10**9, 6400 * 10**9 + 1]

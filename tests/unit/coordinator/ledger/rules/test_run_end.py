import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import MakeBatch, apply_batches, deal_lease
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.leases.closing import measure_extent
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, end_time
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.run_state import RunState
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import OPEN_END


@pytest.fixture
def raw(path: Path, ledger: Ledger) -> Iterator[sqlite3.Connection]:  # it is there first
    """Change the file directly, past the ledger."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def begin(ledger: Ledger, **keys: object) -> None:
    """Begin a closed run that is bounded by time."""
    change(
        ledger,
        create_run,
        "r1",
        parse_spec(Source(None, {"url": "http://shop.test/", "duration": "10s", **keys})),
        0.0,
    )
    change(ledger, lifecycle.start_run, "r1", 1.0)


@pytest.mark.parametrize(("keys", "space"), [({}, OPEN_END), ({"requests": 50}, 50)])
def test_when_the_time_is_over_the_rest_is_unused(
    ledger: Ledger, make_batch: MakeBatch, keys: dict[str, object], space: int
) -> None:
    """The run is completed with what is accounted, be it bounded by a number, too, or not."""
    begin(ledger, **keys)
    first, second = deal_lease(ledger, "r1", 10, 2.0), deal_lease(ledger, "r1", 10, 2.0)
    assert first is not None
    assert second is not None
    apply_batches(ledger, [make_batch(first, done=10, in_flight=[4])], 10.0)
    assert not change(ledger, end_time, "r1", 11.0)
    assert check_ledger(ledger, "r1") == Lengths(pending=space - 19, leased=10, accounted=9)
    apply_batches(ledger, [make_batch(second, done=6)], 11.5)
    assert change(ledger, end_time, "r1", 12.0)
    snapshot = read(ledger, fetch_snapshot, "r1")
    assert (snapshot.record.state, snapshot.record.requests, snapshot.breach) == (
        RunState.COMPLETED,
        15,
        None,
    )
    assert snapshot.lengths == Lengths(pending=0, leased=0, accounted=15, unused=space - 15)
    assert read(ledger, fetch_slices, "r1") == [
        Slice(0, 4, SliceState.ACCOUNTED), Slice(4, 5, SliceState.UNUSED), Slice(5, 16, SliceState.ACCOUNTED),
        Slice(16, space, SliceState.UNUSED),
    ]  # fmt: skip
    assert change(ledger, end_time, "r1", 13.0)


def test_of_a_run_that_is_bounded_by_time_only_what_was_dealt_is_worth_showing(
    ledger: Ledger, make_batch: MakeBatch, begin_run: Callable[..., object]
) -> None:
    """Of any other run all of the space is."""
    begin(ledger)
    assert read(ledger, measure_extent, "r1") == 0
    lease = deal_lease(ledger, "r1", 10, 2.0)
    assert lease is not None
    assert read(ledger, measure_extent, "r1") == 10
    apply_batches(ledger, [make_batch(lease, done=6)], 11.0)
    change(ledger, end_time, "r1", 12.0)
    assert read(ledger, measure_extent, "r1") == 6
    begin_run("r2", 100)
    assert read(ledger, measure_extent, "r2") == 100


def test_a_run_that_is_being_paused_when_its_time_ends_is_paused(
    ledger: Ledger, make_batch: MakeBatch
) -> None:
    """It is completed once it is resumed and its clock says that its time is over."""
    begin(ledger)
    lease = deal_lease(ledger, "r1", 10, 2.0)
    assert lease is not None
    change(ledger, change_state, "r1", RunState.PAUSING, 9.0)
    assert not change(ledger, end_time, "r1", 11.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSING
    apply_batches(ledger, [make_batch(lease, done=6)], 11.5)
    assert not change(ledger, end_time, "r1", 12.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSED
    for state in (RunState.PENDING, RunState.RUNNING):
        change(ledger, change_state, "r1", state, 13.0)
    assert change(ledger, end_time, "r1", 14.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.requests) == (RunState.COMPLETED, 6)


def test_a_run_whose_time_ends_without_a_request_has_none(ledger: Ledger) -> None:
    """No worker took anything."""
    begin(ledger)
    assert change(ledger, end_time, "r1", 11.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.requests) == (RunState.COMPLETED, 0)


def test_only_the_time_of_an_active_run_that_is_bounded_by_it_can_end(
    ledger: Ledger, begin_run: Callable[..., object]
) -> None:
    """Others keep what is pending."""
    begin_run("r2", 100)
    assert not change(ledger, end_time, "r2", 11.0)
    assert check_ledger(ledger, "r2").pending == 100
    change(
        ledger,
        create_run,
        "r1",
        parse_spec(Source(None, {"url": "http://shop.test/", "duration": "10s"})),
        0.0,
    )
    assert not change(ledger, end_time, "r1", 11.0)
    assert check_ledger(ledger, "r1").pending == OPEN_END


def test_what_is_unused_and_the_requests_of_a_run_make_up_its_space(
    ledger: Ledger, raw: sqlite3.Connection
) -> None:
    """A run that says otherwise does not balance."""
    begin(ledger)
    change(ledger, end_time, "r1", 11.0)
    raw.execute("UPDATE runs SET requests = 7")
    with pytest.raises(BreachError, match=rf"{OPEN_END} are unused, but the run has 7 of {OPEN_END}"):
        check_ledger(ledger, "r1")

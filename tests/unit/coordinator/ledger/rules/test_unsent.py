import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.parts import build_open_part
from tests.kit.coordinators.transactions import change, check_ledger, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import expire
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.lifecycle import begin_run, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot, fetch_standing
from oku_coordinator.ledger.rules.unsent import account_not_dealt
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables.outbox_table import take_batch
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch, Part
from oku_core.results.lines import LineKind
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

PENDING, LEASED, ACCOUNTED = SliceState.PENDING, SliceState.LEASED, SliceState.ACCOUNTED


def build_spec(**keys: object) -> Spec:
    """A run of 100 requests in ten seconds, in two phases of 40 and 60."""
    return parse_spec(Source(None, {"stages": ["4s:10..10/s", "6s:10/s"], **keys}))


@pytest.fixture
def run(ledger: Ledger) -> str:
    """An open run that has begun."""
    change(ledger, create_run, "r1", build_spec(), 0.0)
    return change(ledger, begin_run, "r1", 1.0).run


def deal(ledger: Ledger, size: int = 10) -> LeaseRecord:
    """Deal the first pending indices."""
    lease = deal_lease(ledger, "r1", size, 2.0)
    assert lease is not None
    return lease


def say(lease: LeaseRecord, part: Part, done: int, in_flight: Sequence[int] = ()) -> CheckpointBatch:
    """The message that this came of a lease."""
    checkpoint = build_checkpoint(lease, done, in_flight, parts=[part], is_final=False)
    return build_batch(lease, checkpoint)


def test_what_no_worker_had_in_time_is_not_sent(ledger: Ledger, run: str) -> None:
    """It counts in its phase and in the second in which that is found; leases stay as they are."""
    deal(ledger)
    assert change(ledger, account_not_dealt, run, [(0, 15), (35, 50)], 7.9) == 20
    snapshot = read(ledger, fetch_snapshot, run)
    assert (snapshot.breach, snapshot.lengths) == (None, Lengths(pending=70, leased=10, accounted=20))
    assert read(ledger, fetch_slices, run) == [
        Slice(0, 10, LEASED), Slice(10, 15, ACCOUNTED), Slice(15, 35, PENDING), Slice(35, 50, ACCOUNTED),
        Slice(50, 100, PENDING),
    ]  # fmt: skip
    assert {name: account.not_sent for name, account in snapshot.accounts.parts.items()} == {
        ("stage-1", ""): [0, 0, 10], ("stage-2", ""): [0, 0, 10],
    }  # fmt: skip
    assert snapshot.account.outcomes == make_counts(not_sent=20)
    assert (snapshot.account.statuses, snapshot.workers) == ({}, [])
    assert read(ledger, fetch_standing, run).not_sent == [0, 0, 20]
    assert change(ledger, account_not_dealt, run, [(0, 15), (35, 50)], 8.0) == 0


def test_the_last_request_of_a_run_may_be_one_that_nobody_had(ledger: Ledger, run: str) -> None:
    """The run is completed then."""
    assert change(ledger, account_not_dealt, run, [(0, 100)], 20.0) == 100
    assert read(ledger, fetch_run, run).state == RunState.COMPLETED
    assert change(ledger, account_not_dealt, run, [(0, 100)], 21.0) == 0


def test_a_lease_that_is_taken_back_may_be_lost(ledger: Ledger, run: str) -> None:
    """What may have been sent counts in the bound whether it is lost or not; what was covered stays."""
    lease = deal(ledger, 20)
    part = build_open_part([1000] * 6)
    part = msgspec.structs.replace(
        part, phase="stage-1", per_second={3: part.outcomes}, sent_per_second={3: 8}
    )
    assert apply_batches(ledger, [say(lease, part, 8, [2, 5])], 4.0) == ["accounted"]
    seen: list[Sequence[Range]] = []

    def find_lost(_: LeaseRecord, ranges: Sequence[Range]) -> Sequence[Range]:
        seen.append(ranges)
        return [(2, 3), (5, 6), (8, 12)]

    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 9.0, find_lost)
    assert seen == [[(2, 3), (5, 6), (8, 20)]]
    snapshot = read(ledger, fetch_snapshot, run)
    assert (snapshot.breach, snapshot.lengths) == (None, Lengths(pending=88, leased=0, accounted=12))
    assert snapshot.record.resent_at_most == 14
    assert snapshot.account.outcomes == make_counts(6, lost=6)
    assert [worker.requests for worker in snapshot.workers] == [6]


def test_what_the_coordinator_accounts_for_is_in_lines_and_seconds(path: Path) -> None:
    """The lines of a run sum to its account, and the seconds, too."""
    ledger = Ledger(path, publishes=True)
    change(ledger, create_run, "r1", build_spec(), 0.0)
    change(ledger, begin_run, "r1", 1.0)
    change(ledger, account_not_dealt, "r1", [(30, 50)], 7.9)
    lines = [
        json.loads(line.text)
        for line in change(ledger, take_batch, 100, 10**6, 9.0)
        if line.kind == LineKind.RANGE
    ]
    assert [(line["phase"], line["requests"], line["not_sent"]) for line in lines] == [
        ("stage-1", 10, 10), ("stage-2", 10, 10),
    ]  # fmt: skip
    (sample,) = read(ledger, fetch_history, "r1").samples
    assert (sample.at, sample.outcomes) == (8.0, make_counts(not_sent=20))
    ledger.close()


@settings(max_examples=30)
@given(
    leased=st.lists(st.integers(1, 9), max_size=4),
    ranges=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=12),
)
def test_exactly_what_is_pending_of_the_ranges_is_accounted(
    tmp_path_factory: pytest.TempPathFactory, leased: list[int], ranges: list[Range]
) -> None:
    """Whatever the ranges are, and however they overlap, each request counts once."""
    ledger = open_ledger(tmp_path_factory.mktemp("unsent") / "ledger.sqlite3")
    change(ledger, create_run, "r1", build_spec(), 0.0)
    change(ledger, begin_run, "r1", 1.0)
    for size in leased:
        deal(ledger, size)
    due = {index for start, stop in ranges for index in range(max(start, sum(leased)), stop)}
    assert change(ledger, account_not_dealt, "r1", ranges, 5.0) == len(due)
    slices = read(ledger, fetch_slices, "r1")
    assert {
        index for start, stop, state in slices if state == ACCOUNTED for index in range(start, stop)
    } == due
    assert all(before.state != after.state or after.state == LEASED for before, after in pairwise(slices))
    assert check_ledger(ledger, "r1").accounted == len(due)
    ledger.close()


def test_thousands_of_slices_are_accounted_page_by_page(ledger: Ledger) -> None:
    """Leases that lie between stay, and neighbours are joined over the borders of pages."""
    change(ledger, create_run, "r1", parse_spec(Source(None, {"rate": "1000/s", "duration": "10s"})), 0.0)
    change(ledger, begin_run, "r1", 1.0)
    for start in range(0, 3000, 5):
        change(ledger, account_not_dealt, "r1", [(start, start + 1)], 2.0)
    assert change(ledger, account_not_dealt, "r1", [(3, 9_999)], 3.0) == 9996 - 599
    assert read(ledger, fetch_slices, "r1") == [
        Slice(0, 1, ACCOUNTED), Slice(1, 3, PENDING), Slice(3, 9_999, ACCOUNTED),
        Slice(9_999, 10_000, PENDING),
    ]  # fmt: skip
    assert check_ledger(ledger, "r1").accounted == 9997


@pytest.mark.parametrize(
    "part",
    [
        Part(phase="stage-1", outcomes=make_counts(lost=10), per_second={3: make_counts(lost=10)}),
        Part(
            phase="stage-1", outcomes=make_counts(not_sent=10), not_sent=[0, 0, 10],
            per_second={3: make_counts(not_sent=10)},
        ),
    ],
    ids=["lost", "not dealt"],
)  # fmt: skip
def test_workers_cannot_say_what_only_the_coordinator_knows(
    ledger: Ledger, run: str, make_batch: Callable[..., CheckpointBatch], part: Part
) -> None:
    """A checkpoint with lost requests, or with such that no worker had, is untrue."""
    lease = deal(ledger)
    assert apply_batches(ledger, [make_batch(lease, parts=[part])], 4.0) == ["untrue"]
    assert check_ledger(ledger, run).accounted == 0

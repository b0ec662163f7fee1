import logging
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.checkpoints import change_checkpoint
from tests.kit.coordinators.leases import (
    Apply,
    Deal,
    MakeBatch,
    build_batch,
    build_checkpoint,
    build_part,
    deal_lease,
    expire,
    shorten_to_limits,
)
from tests.kit.coordinators.transactions import change as change_ledger
from tests.kit.coordinators.transactions import check_ledger, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases.intake import fold_batches, raise_limits
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord, Receipt
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases, fetch_taken_back
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.accounting.outcome import Outcome, ReasonCount
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint
from oku_core.results.lines import LineKind
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target


def build_spec_with_targets(*names: str) -> Spec:
    """A run of 100 requests to several targets."""
    return Spec(requests=100, targets=tuple(Target(name=name, url="/") for name in names))


def fetch_resent(ledger: Ledger, run: str = "r1") -> int:
    """The number of requests that may have been sent again."""
    return read(ledger, fetch_run, run).resent_at_most


def fetch_open(ledger: Ledger, lease: LeaseRecord) -> LeaseRecord:
    """An open lease as it is now."""
    return next(each for each in read(ledger, fetch_open_leases, lease.run) if each.id == lease.id)


def say(
    ledger: Ledger, lease: LeaseRecord, now: float, *checkpoints: Checkpoint, allowance: int = 0
) -> Receipt:
    """Take in checkpoints of a lease."""
    return change_ledger(
        ledger, fold_batches, [build_batch(lease, *checkpoints)], lambda _batch, _spec: allowance, now
    )[0]


def build_progress(lease: LeaseRecord, done: int, *in_flight: int, sequence: int = 1) -> Checkpoint:
    """A checkpoint of a lease that goes on."""
    return build_checkpoint(lease, done, in_flight, sequence=sequence, is_final=False)


@pytest.mark.parametrize(
    ("untouched", "verdict"),
    [
        ([4], MessageVerdict.UNTRUE),
        ([5], MessageVerdict.CLOSED),
        ([4, 5], MessageVerdict.CLOSED),
    ],
)
def test_what_was_untouched_stays_untouched(
    ledger: Ledger, deal: Deal, untouched: list[int], verdict: MessageVerdict
) -> None:
    """Nobody sends what was given back."""
    lease = deal(20)
    say(ledger, lease, 5.0, msgspec.structs.replace(build_progress(lease, 10, 4, 5), untouched=[5]))
    final = build_checkpoint(lease, 10, [4, 5], sequence=2, untouched=untouched)
    assert say(ledger, lease, 6.0, final).verdicts == [verdict]


def test_a_lease_that_was_not_begun_is_given_back_without_a_trace(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Nothing was sent, so nothing counts as resent and no period opens."""
    assert apply([make_batch(deal(), done=0)], 5.0) == [MessageVerdict.CLOSED]
    assert read(ledger, fetch_slices, "r1") == [Slice(0, 100, SliceState.PENDING)]
    record = read(ledger, fetch_run, "r1")
    assert (record.resent_at_most, record.started_at, record.periods) == (0, None, 0)


# What comes again, too late or from others


def test_what_such_a_worker_did_not_send_was_not_sent_in_vain(ledger: Ledger, deal: Deal) -> None:
    """What was too late for it, and iterations that had not begun."""
    lease = deal(50, limit=40)
    say(ledger, lease, 4.0, build_progress(lease, 10, 4, 7))
    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 5.0)
    part = build_part(9)
    skipped = msgspec.structs.replace(
        part, outcomes=make_counts(9, not_sent=18), not_sent=[0, 18, 0], failed={Outcome.NOT_SENT: [20, 18]},
        per_second={3: make_counts(9, not_sent=18)},
        reasons=[ReasonCount(make_counts(not_sent=1).index(1), "late", 18, 20, 37)],
    )  # fmt: skip
    final = build_checkpoint(
        lease, 40, [7, *range(10, 20), 38, 39], sequence=3, end=40, untouched=[7, 39], parts=[skipped]
    )
    assert say(ledger, lease, 7.0, final).verdicts == [MessageVerdict.LATE]
    assert fetch_resent(ledger) == 1 + 10 + 1
    assert read(ledger, fetch_taken_back, "r1") == [
        (4, 5), *((index, index + 1) for index in range(10, 20)), (38, 39),
    ]  # fmt: skip
    assert check_ledger(ledger, "r1").accounted == 8


def test_a_last_word_that_cannot_be_true_changes_nothing(ledger: Ledger, deal: Deal) -> None:
    """Nor does one of another process, or of a run at rest."""
    lease = deal(50, limit=40)
    say(ledger, lease, 4.0, build_progress(lease, 10, 4, 7))
    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 5.0)
    for final in (
        build_checkpoint(lease, 9, sequence=3, end=9),
        build_checkpoint(lease, 15, [99], sequence=3, end=15),
    ):
        say(ledger, lease, 7.0, final)
        assert fetch_resent(ledger) == 32
    batch = build_batch(lease, build_checkpoint(lease, 15, sequence=3, end=15), incarnation="b7")
    [receipt] = change_ledger(ledger, fold_batches, [batch], lambda _batch, _spec: 0, 7.0)
    assert receipt.verdicts == [MessageVerdict.FOREIGN]
    change_ledger(ledger, change_state, "r1", RunState.PAUSING, 8.0)
    say(ledger, lease, 9.0, build_checkpoint(lease, 15, sequence=3, end=15))
    assert fetch_resent(ledger) == 32


@pytest.mark.parametrize("field", ["lease", "worker", "incarnation"])
def test_a_checkpoint_whose_names_cannot_be_written_is_of_no_lease(
    ledger: Ledger, deal: Deal, field: str
) -> None:
    """JSON can carry half a surrogate pair, which UTF-8 cannot encode: not even an answer can name it."""
    lease = deal()
    checkpoint, changes = build_checkpoint(lease), {field: "\ud800"}
    if field == "lease":
        batch = build_batch(lease, msgspec.structs.replace(checkpoint, **changes))
    else:
        batch = build_batch(lease, checkpoint, **changes)
    receipt = change_ledger(ledger, fold_batches, [batch], lambda _batch, _spec: 0, 5.0)[0]
    assert receipt.verdicts == [MessageVerdict.UNKNOWN]
    assert (receipt.confirmed, receipt.ends) == ({}, {})
    assert check_ledger(ledger, "r1").accounted == 0


def test_a_batch_whose_run_cannot_be_written_is_taken_in(deal: Deal, apply: Apply) -> None:
    """Its checkpoints name their leases by themselves."""
    lease = deal()
    assert apply([build_batch(lease, build_checkpoint(lease), run="\ud800")], 5.0) == [MessageVerdict.CLOSED]


UNTRUE = {
    "beyond its limit": {"done": 7, "parts": [build_part(6)]},
    "less than before": {"done": 4, "in_flight": [], "parts": []},
    "a later end": {"end": 10},
    "in flight again": {"in_flight": [1, 3], "parts": [build_part(4)]},
    "fewer outcomes": {"in_flight": [3], "parts": [build_part(3)]},
    "more outcomes than it covers": {"parts": [build_part(6)]},
    "another status": {"parts": [build_part(5, latency_us=2000)]},
    "a figure below zero": {"cpu_s": -1.0},
    "fewer lagged requests": {"lagged": 1},
    "seconds that do not sum up": {"parts": [build_part(5, second=4)]},
}


@pytest.mark.parametrize("change", UNTRUE.values(), ids=UNTRUE)
def test_a_checkpoint_that_cannot_be_true_changes_nothing(
    ledger: Ledger, deal: Deal, change: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """It must contain its predecessor, and its worker must not pass its limit; the log says what is wrong."""
    lease = deal(10, limit=6)
    first = build_checkpoint(lease, 5, [3], sequence=1, is_final=False, end=9, lagged=2)
    say(ledger, lease, 5.0, first)
    before = fetch_open(ledger, lease), read(ledger, fetch_snapshot, "r1").record
    true = {"done": 5, "end": 9, "sequence": 2, "is_final": False, "lagged": 2}
    with caplog.at_level(logging.WARNING):
        receipt = say(ledger, lease, 6.0, build_checkpoint(lease, **true | change))  # type: ignore[arg-type]
    assert receipt.verdicts == [MessageVerdict.UNTRUE]
    assert f"a checkpoint of lease {lease.id} that cannot be true: " in caplog.text
    assert (fetch_open(ledger, lease), read(ledger, fetch_snapshot, "r1").record) == before
    assert (receipt.confirmed, receipt.ends) == ({}, {lease.id: 0})
    assert say(ledger, lease, 7.0, build_checkpoint(lease, **true)).verdicts == [MessageVerdict.ACCOUNTED]  # type: ignore[arg-type]


# What the worker hears


def test_the_worker_hears_what_is_confirmed(ledger: Ledger, deal: Deal) -> None:
    """A final checkpoint is confirmed whatever it is of, or its worker would repeat it for ever."""
    going, closed, lost, failed = deal(), deal(), deal(), deal(run="r2")
    expire(ledger, [lost.id], ExpiryReason.WORKER_LOST, 4.0)
    change_ledger(ledger, change_state, "r2", RunState.FAILED, 4.0)
    receipt = say(
        ledger, going, 5.0,
        build_progress(going, 3), build_checkpoint(closed), build_checkpoint(lost),
        build_checkpoint(failed), build_checkpoint(going, lease="unknown", sequence=7),
    )  # fmt: skip
    assert receipt.confirmed == {going.id: 1, closed.id: 1, lost.id: 1, failed.id: 1, "unknown": 7}
    assert receipt.ends == {}


def test_the_worker_ends_leases_that_nobody_waits_for(ledger: Ledger, deal: Deal) -> None:
    """One that was taken back, one of a failed run, and one that is not known are to end at once."""
    lost, failed = deal(), deal(run="r2")
    expire(ledger, [lost.id], ExpiryReason.WORKER_LOST, 4.0)
    change_ledger(ledger, change_state, "r2", RunState.FAILED, 4.0)
    unknown = build_checkpoint(lost, 3, is_final=False, lease="unknown")
    receipt = say(ledger, lost, 5.0, build_progress(lost, 3), build_progress(failed, 3), unknown)
    assert receipt.ends == {lost.id: 0, failed.id: 0, "unknown": 0}
    assert receipt.confirmed == {}


def test_limits_rise_with_each_checkpoint(ledger: Ledger, deal: Deal) -> None:
    """They are in the ledger before the worker hears of them, and it hears of them again each time."""
    first, second = deal(10, limit=4), deal(10, limit=0)
    checkpoint = build_progress(first, 4, 1)
    receipt = say(ledger, first, 5.0, checkpoint, allowance=8)
    assert receipt.limits == {first.id: 10, second.id: 2}
    assert [lease.limit for lease in read(ledger, fetch_open_leases, "r1")] == [10, 2]
    assert say(ledger, first, 6.0, checkpoint, allowance=0).limits == {first.id: 10, second.id: 2}


@pytest.mark.parametrize("state", [RunState.PAUSING, RunState.CANCELLING])
def test_no_limit_rises_in_a_run_that_is_being_stopped(ledger: Ledger, deal: Deal, state: RunState) -> None:
    """Its workers take no more."""
    lease = deal(limit=4)
    change_ledger(ledger, change_state, "r1", state, 4.0)
    assert say(ledger, lease, 5.0, build_progress(lease, 4), allowance=100).limits == {}
    assert fetch_open(ledger, lease).limit == 4


def test_a_worker_hears_that_its_lease_was_cut(ledger: Ledger, deal: Deal) -> None:
    """It did not know when it spoke, but can't have gone further than its limit."""
    lease = deal(20, limit=6)
    assert [cut.end for cut in shorten_to_limits(ledger, [lease.id], 4.0)] == [6]
    receipt = say(ledger, lease, 5.0, build_progress(lease, 5), allowance=100)
    assert (receipt.verdicts, receipt.ends) == ([MessageVerdict.ACCOUNTED], {lease.id: 6})
    assert fetch_open(ledger, lease).limit == 6
    assert say(ledger, lease, 6.0, build_checkpoint(lease, 6, sequence=2)).verdicts == [MessageVerdict.CLOSED]


def test_a_worker_that_was_suspect_hears_of_all_ends_at_once(ledger: Ledger, deal: Deal) -> None:
    """Also of leases that it has said nothing of: it would ask for the limits of one after the other."""
    first, second, third = deal(limit=6), deal(limit=2), deal(limit=0)
    shorten_to_limits(ledger, [first.id, second.id, third.id], 4.0)
    receipt = say(ledger, first, 5.0, build_progress(first, 5), allowance=100)
    assert receipt.ends == {first.id: 6, second.id: 2, third.id: 0}
    receipt = say(ledger, first, 6.0, build_checkpoint(first, 6, end=6, sequence=2), allowance=100)
    assert receipt.ends == {second.id: 2, third.id: 0}


# Runs


def test_a_run_is_completed_when_its_last_lease_is_closed(ledger: Ledger, deal: Deal) -> None:
    """It is not when all is accounted and a worker has not yet said its last word."""
    lease = deal(100)
    say(ledger, lease, 5.0, build_progress(lease, 100))
    assert check_ledger(ledger, "r1") == Lengths(pending=0, leased=0, accounted=100)
    assert read(ledger, fetch_run, "r1").state == RunState.RUNNING
    say(ledger, lease, 6.0, build_checkpoint(lease, sequence=2))
    assert read(ledger, fetch_run, "r1").state == RunState.COMPLETED


def test_nothing_is_accounted_for_a_run_that_has_failed(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Workers may still have its leases, but its account and its leases stay as they were."""
    lease = deal()
    change_ledger(ledger, change_state, "r1", RunState.FAILED, 4.0, "a reason")
    assert apply([make_batch(lease)], 5.0) == [MessageVerdict.LATE]
    assert expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 6.0) == []
    assert shorten_to_limits(ledger, [lease.id], 6.0) == []
    assert check_ledger(ledger, "r1") == Lengths(pending=90, leased=10, accounted=0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.reason, record.active_since) == (RunState.FAILED, "a reason", None)


@pytest.mark.parametrize(("worker_time", "begin"), [(3.0, 3.0), (1.0, 2.0), (99.0, 5.0)])
def test_a_period_opens_when_the_worker_began(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, worker_time: float, begin: float
) -> None:
    """The worker's clock counts within bounds: after the lease was dealt at 2 s, and before now at 5 s."""
    apply([make_batch(deal(), is_final=False, started_at=worker_time)], 5.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.started_at, record.active_since, record.periods) == (begin, begin, 1)


def test_a_run_that_is_being_stopped_is_not_failed_by_a_refusal(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """It deals out no more leases, and may be resumed with other workers."""
    lease = deal()
    change_ledger(ledger, change_state, "r1", RunState.PAUSING, 4.0)
    apply([make_batch(lease, done=0, refusal="no such engine")], 5.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSED


def test_watched_seconds_add_up(ledger: Ledger, deal: Deal) -> None:
    """Each checkpoint has those of its lease since its start."""
    first, second = deal(), deal()
    for sequence, (watched_s, underfilled_s) in enumerate([(2.0, 0.5), (3.0, 0.5)], 1):
        progress = build_progress(first, 5, sequence=sequence)
        say(
            ledger, first, 5.0,
            change_checkpoint(progress, watched_s=watched_s, underfilled_s=underfilled_s),
        )  # fmt: skip
    say(ledger, second, 6.0, build_checkpoint(second, watched_s=4.0, underfilled_s=1.0))
    record = read(ledger, fetch_run, "r1")
    assert (record.watched_s, record.underfilled_s) == (7.0, 1.5)


def test_a_closed_lease_has_a_line_for_each_of_its_parts(path: Path) -> None:
    """The lines of all leases sum to the account; a lease that was taken back has lines as well."""
    with closing(Ledger(path, publishes=True)) as ledger:
        change_ledger(ledger, create_run, "r1", build_spec_with_targets("home", "login"), 0.0)
        change_ledger(ledger, change_state, "r1", RunState.RUNNING, 1.0)
        closed, lost = (deal_lease(ledger, "r1", 20, 2.0) for _ in range(2))
        named = msgspec.structs.replace(build_part(5), name="login")
        home = msgspec.structs.replace(build_part(7), name="home")
        say(ledger, closed, 5.0, build_checkpoint(closed, 12, parts=[home, named]))
        other = msgspec.structs.replace(build_part(8), name="home")
        say(ledger, lost, 5.0, build_checkpoint(lost, 9, [4], is_final=False, parts=[other]))
        expire(ledger, [lost.id], ExpiryReason.WORKER_LOST, 6.0)
        waiting = change_ledger(ledger, fetch_batch, 100, 10**6, 7.0)
    lines = [msgspec.json.decode(line.text) for line in waiting if line.kind == LineKind.RANGE]
    figures = [
        (line["lease"], line["start"], line["stop"], line["requests"], line.get("target")) for line in lines
    ]
    assert figures == [
        (closed.id, 0, 12, 7, "home"),
        (closed.id, 0, 12, 5, "login"),
        (lost.id, 20, 29, 8, "home"),
    ]
    assert [line["cpu_s"] for line in lines] == [0.5, 0.0, 0.5]
    statuses = [msgspec.json.decode(line.text) for line in waiting if line.kind == LineKind.STATUS]
    assert sum(line["requests"] for line in statuses) == 20


def build_lease(name: str, *, done: int = 0, limit: int = 0, end: int = 10) -> LeaseRecord:
    """An open lease."""
    return LeaseRecord(
        id=name, run="r1", ranges=IndexRanges([(0, max(end, limit, 1))]), worker="w1", incarnation="b1",
        cut_at=0.0, limit=limit, end=end, reported_end=end, done=done,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("allowance", "raised"),
    [
        (0, {}),
        (3, {"a": 7}),
        (6, {"a": 10}),
        (8, {"a": 10, "b": 2}),
        (100, {"a": 10, "b": 10, "c": 5}),
    ],
)
def test_the_allowance_is_spent_in_the_order_of_the_feed(allowance: int, raised: dict[str, int]) -> None:
    """A lease gets its share only when the ones before it may be taken to their ends."""
    leases = [build_lease("a", done=4, limit=5), build_lease("b"), build_lease("c", end=5)]
    assert raise_limits(leases, allowance) == raised


def test_what_was_allowed_before_is_spent() -> None:
    """A limit that is further ahead than the allowance stays, and leaves nothing for others."""
    leases = [build_lease("a", done=2, limit=8), build_lease("b")]
    assert raise_limits(leases, 4) == {}
    assert raise_limits(leases, 9) == {"a": 10, "b": 1}


def test_a_limit_beyond_the_end_of_its_lease_is_not_spent_there() -> None:
    """A lease that was shortened can be taken to its end only."""
    leases = [build_lease("a", done=2, limit=8, end=4), build_lease("b")]
    assert raise_limits(leases, 5) == {"b": 3}


LEASES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(sorted).map(
        lambda figures: build_lease(f"{figures}", done=figures[0], limit=figures[1], end=figures[2])
    ),
    max_size=6, unique_by=lambda lease: lease.id,
)  # fmt: skip


@given(LEASES, st.integers(0, 60))
def test_no_limit_falls_and_no_more_is_allowed_than_must(leases: list[LeaseRecord], allowance: int) -> None:
    """What a worker may take is its allowance, unless it was allowed more before or has less."""
    raised = raise_limits(leases, allowance)
    allowed = 0
    for lease in leases:
        limit = raised.get(lease.id, lease.limit)
        assert lease.limit <= limit <= lease.end
        allowed += limit - lease.done
    before = sum(lease.limit - lease.done for lease in leases)
    untaken = sum(lease.end - lease.done for lease in leases)
    assert min(untaken, allowance) <= allowed <= max(before, min(untaken, allowance + before))

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.checkpoints import change_checkpoint
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.rules.leases.growth import (
    PartGrowth,
    UntrueError,
    find_regress,
    grow_inner,
    grow_part,
    grow_parts,
    list_ended,
    list_sent,
)
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_SENT, build_no_counts, count_answered, sum_counts
from oku_core.messaging.checkpoint import Checkpoint, LeaseFigures, Part

Request = tuple[int, int, int]
"""The place of its outcome, the second in which it ended, and its latency in µs."""
Requests = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 9999)), max_size=20)


def build_part(requests: list[Request], **changes: Any) -> Part:
    """The part of these requests."""
    outcomes = build_no_counts()
    times = {time: Histogram() for time in Time}
    seconds, sent = dict[int, list[int]](), Counter[int]()
    for place, second, latency_us in requests:
        outcomes[place] += 1
        seconds.setdefault(second, build_no_counts())[place] += 1
        if place < 2:
            for time in (Time.LATENCY, Time.RESPONSE_TIME, Time.SPLIT_FIRST_BYTE, Time.TRANSFER):
                times[time].record(latency_us)
            times[Time.SPLIT_LATENCY].record(2 * latency_us)
        if place != NOT_SENT:
            times[Time.CONNECT].record(latency_us)
            times[Time.TLS].record(latency_us)
            times[Time.LATENESS].record(latency_us // 10)
            sent[second] += 1
    statuses = {status: count for status, count in (("200", outcomes[0]), ("500", outcomes[1])) if count}
    part = Part(
        outcomes=outcomes, not_sent=[0, outcomes[NOT_SENT], 0], statuses=statuses,
        bytes_received=3 * len(requests), times=build_snapshots(times), per_second=seconds,
        sent_per_second=dict(sent),
    )  # fmt: skip
    return msgspec.structs.replace(part, **changes)


def build_snapshots(times: dict[Time, Histogram]) -> dict[Time, HistogramSnapshot]:
    """Those that are not empty."""
    return {time: histogram.build_latency() for time, histogram in times.items() if histogram.total}


def lose(time: Time) -> Part:
    """The part of `BEFORE` with fewer times of one kind."""
    part = build_part(BEFORE)
    fewer = build_part(BEFORE[1:]).histogram(time)
    return msgspec.structs.replace(part, times=part.times | {time: fewer})


@given(before=Requests, more=Requests)
def test_a_part_gains_what_lies_between_two_checkpoints(before: list[Request], more: list[Request]) -> None:
    """Everything of it is the difference, and the stored part has all of its seconds."""
    earlier, later = build_part(before), build_part([*before, *more])
    growth = grow_part(earlier, later)
    gained, expected = growth.gained, build_part(more)
    assert growth.part == later
    assert gained.outcomes == expected.outcomes == sum_counts(gained.per_second.values())
    assert (gained.statuses, gained.per_second) == (expected.statuses, expected.per_second)
    assert (gained.not_sent, gained.sent_per_second) == (expected.not_sent, expected.sent_per_second)
    assert gained.bytes_received == expected.bytes_received
    for time in Time:
        grown, due = gained.histogram(time), expected.histogram(time)
        assert (grown.total, grown.sum_us) == (due.total, due.sum_us)
    assert gained.histogram(Time.LATENCY).total == count_answered(gained.outcomes)
    assert list_ended(gained) == {second: [*counts, 0] for second, counts in expected.per_second.items()}
    assert list_sent(gained) == {
        second: [*build_no_counts(), sent] for second, sent in expected.sent_per_second.items()
    }


@given(before=Requests, gained=Requests)
def test_seconds_that_have_not_changed_may_be_left_out(before: list[Request], gained: list[Request]) -> None:
    """The part keeps them."""
    earlier, later = build_part(before), build_part([*before, *gained])
    fresh = {s: counts for s, counts in later.per_second.items() if earlier.per_second.get(s) != counts}
    sent = {s: count for s, count in later.sent_per_second.items() if earlier.sent_per_second.get(s) != count}
    trimmed = msgspec.structs.replace(later, per_second=fresh, sent_per_second=sent)
    assert grow_part(earlier, trimmed) == grow_part(earlier, later)


BEFORE = [(0, 1, 1000), (0, 1, 2000), (1, 2, 3000), (2, 2, 0)]


@pytest.mark.parametrize(
    ("after", "fault"),
    [
        *((lose(time), f"{time} does not contain what it did") for time in build_part(BEFORE).times),
        (build_part(BEFORE, times={}), "latency does not contain what it did"),
        (build_part([*BEFORE, (6, 3, 0)], not_sent=[0, -1, 2]), "the causes for not sending counted"),
        (build_part(BEFORE, sent_per_second={1: 1}), "fewer were sent in a second"),
        (build_part(BEFORE[:3], bytes_received=12, per_second={}), "the outcomes counted"),
        (build_part(BEFORE, bytes_received=11), "fewer bytes"),
        (build_part(BEFORE, statuses={"201": 2, "500": 1}), "a status has gone"),
        (build_part([*BEFORE, (0, 3, 9)], statuses={"200": 1, "500": 3}), "less often"),
        (build_part(BEFORE, per_second={1: make_counts(1)}), "a second counted"),
        (build_part(BEFORE, per_second={3: make_counts(timeout=1)}), "do not sum to the outcomes"),
        (build_part([*BEFORE, (3, 3, 0)], per_second={}), "do not sum to the outcomes"),
    ],
)
def test_a_part_that_takes_something_back_is_untrue(after: Part, fault: str) -> None:
    """Whatever was said of a lease stays true."""
    with pytest.raises(UntrueError, match=fault):
        grow_part(build_part(BEFORE), after)


def build_checkpoint(done: int, *parts: Part, **changes: Any) -> Checkpoint:
    """A checkpoint of a lease of twenty positions."""
    checkpoint = Checkpoint(lease="l1", sequence=2, done=done, end=20, parts=list(parts))
    return change_checkpoint(checkpoint, **changes)


def test_the_parts_of_a_lease_grow_by_themselves() -> None:
    """Those that are left out are as they were, and new ones begin with nothing."""
    kept, grown = build_part(BEFORE, name="kept"), build_part(BEFORE, name="grown")
    stored = {("", "kept"): kept, ("", "grown"): grown}
    new = build_part([(5, 4, 0)], phase="second")
    growths = grow_parts(
        stored, build_checkpoint(11, build_part([*BEFORE, (0, 3, 1), (4, 3, 0)], name="grown"), new)
    )
    assert [growth.part.name for growth in growths] == ["grown", ""]
    assert [growth.gained.outcomes for growth in growths] == [
        make_counts(1, disconnected=1),
        make_counts(protocol_error=1),
    ]
    assert isinstance(growths[0], PartGrowth)


@pytest.mark.parametrize("done", [3, 5])
def test_parts_must_sum_to_what_is_covered(done: int) -> None:
    """Those that are left out count."""
    with pytest.raises(UntrueError, match=f"the outcomes sum to 4, but {done} are covered"):
        grow_parts({("", ""): build_part(BEFORE)}, build_checkpoint(done))


def test_no_more_was_sent_than_has_ended_or_is_in_flight() -> None:
    """What was sent may be in flight; what is not sent, was not."""
    sent = {1: 2, 2: 2, 3: 1}
    grow_parts({}, build_checkpoint(5, build_part(BEFORE, sent_per_second=sent), in_flight=[4]))
    with pytest.raises(UntrueError, match="5 were sent, but no more than 4 have ended or are in flight"):
        grow_parts({}, build_checkpoint(4, build_part(BEFORE, sent_per_second=sent)))
    parts = build_part([*BEFORE, (NOT_SENT, 3, 0)], sent_per_second=sent)
    with pytest.raises(UntrueError, match="5 were sent, but no more than 4 have ended or are in flight"):
        grow_parts({}, build_checkpoint(5, parts))


LEASE = LeaseRecord(
    id="l1", run="r1", ranges=IndexRanges([(0, 20)]), worker="w1", incarnation="b1", cut_at=0.0,
    limit=15, end=20, done=10, in_flight=(2, 7), sequence=1,
    reported_end=18, figures=LeaseFigures(saturated=3, lagged=2),
)  # fmt: skip
TRUE: dict[str, Any] = {"end": 18, "in_flight": [2, 7], "saturated": 3, "lagged": 2}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"done": 16}, "may take up to 15 only"),
        ({"done": 9, "in_flight": [2, 7]}, "it is done to 9, but was to 10"),
        ({"end": 19}, "its end was 18 and is 19"),
        ({"in_flight": [2, 3]}, "in flight again"),
        ({"saturated": 2}, "saturated was 3 and is 2"),
        ({"lagged": 1}, "lagged was 2 and is 1"),
    ],
)
def test_a_checkpoint_that_takes_something_back_is_untrue(change: dict[str, Any], fault: str) -> None:
    """It says what was taken back, or which bound was passed."""
    found = find_regress(LEASE, change_checkpoint(build_checkpoint(10), **TRUE | change))
    assert found is not None
    assert fault in found


def test_inner_parts_gain_by_phase_and_name() -> None:
    """What they sum to is nobody's affair, and a part that a checkpoint leaves out has gained nothing."""
    stored = {("", "login"): build_part([(0, 1, 5)]), ("", "orders"): build_part([(0, 1, 5)] * 3)}
    inner = [
        msgspec.structs.replace(build_part([(0, 1, 5), (2, 2, 0)]), name="login"),
        msgspec.structs.replace(build_part([(0, 2, 9)]), name="cart"),
    ]
    login, cart = grow_inner(stored, Checkpoint(lease="l1", sequence=2, done=1, end=5, inner=inner))
    assert (login.gained.outcomes, cart.gained.outcomes) == (make_counts(timeout=1), make_counts(1))
    with pytest.raises(UntrueError, match="fewer bytes were received than before"):
        grow_inner(
            {("", "cart"): build_part([(0, 2, 9)] * 2)},
            Checkpoint(lease="l1", sequence=2, done=1, end=5, inner=inner),
        )

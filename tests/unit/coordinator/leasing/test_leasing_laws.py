"""The laws of the pure rules by which work is sized, allowed and moved among workers."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import assume, given
from hypothesis import strategies as st

from oku_coordinator.leasing.delivery import AskedEnds
from oku_coordinator.leasing.pace import Pace, choose_allowance, choose_checkpoint_s
from oku_coordinator.leasing.ranges.balance import find_excess, find_uneven
from oku_coordinator.leasing.ranges.sizing import (
    Hands,
    HeldLease,
    choose_sizes,
    find_full,
    find_most_held,
    find_weight,
)
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import MOST_LEASES
from oku_core.spec.spec import Spec

WINDOWS = st.integers(1, 20_000)
RATES = st.floats(0.01, 1e6)
_PENDING = 10**12
_ROUND_UP = 2.0
"""Requests by which sizes that are rounded up, and guesses of a rate that round, may miss a bound."""


@st.composite
def draw_hands(draw: st.DrawFn, window: int, number: int, rates: st.SearchStrategy[float | None]) -> Hands:
    """The hands of one worker with up to four leases, some of which only wait for their last answers."""
    rate_rps = draw(rates)
    most_rps = draw(st.one_of(st.just(math.inf), RATES)) if rate_rps is None else rate_rps
    leases = tuple(
        HeldLease(f"{number}.{place}", taken, taken + untaken)
        for place, (taken, untaken) in enumerate(
            draw(st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 10**6)), max_size=4))
        )
    )
    taken = draw(st.integers(0, 10**6))
    return Hands(f"w{number}", f"b{number}", window, leases, rate_rps, most_rps, taken, 0)


@st.composite
def draw_fleets(draw: st.DrawFn, rates: st.SearchStrategy[float | None]) -> list[Hands]:
    """A few workers with the same window."""
    window = draw(WINDOWS)
    return [draw(draw_hands(window, number, rates)) for number in range(draw(st.integers(1, 6)))]


def deal(fleet: Sequence[Hands], pending: int, range_size: int | None = None) -> list[tuple[Hands, int]]:
    """Who gets leases of which size, with the first hundred of them."""
    weight = sum(find_weight(each, None) for each in fleet)
    return choose_sizes(fleet, pending, weight=weight, range_size=range_size, most=100)


def give(fleet: Sequence[Hands], chosen: Sequence[tuple[Hands, int]]) -> list[Hands]:
    """The hands that have what was chosen for them."""
    sizes: dict[str, list[int]] = {each.worker: [] for each in fleet}
    for each, size in chosen:
        sizes[each.worker].append(size)
    return [
        each._replace(
            leases=(*each.leases, *(HeldLease(f"n{n}", 0, size) for n, size in enumerate(sizes[each.worker])))
        )
        for each in fleet
    ]


def fill(fleet: list[Hands], range_size: int | None = None) -> list[Hands]:
    """The hands once nobody gets any more."""
    while chosen := deal(fleet, _PENDING, range_size):
        fleet = give(fleet, chosen)
    return fleet


def shorten_all(fleet: Sequence[Hands], asked: AskedEnds) -> Iterator[Hands]:
    """The hands once all workers have done what they are asked."""
    for each in fleet:
        ends = asked.get(each.incarnation, {})
        yield each._replace(
            leases=tuple(lease._replace(end=ends.get(lease.id, lease.end)) for lease in each.leases)
        )


@given(WINDOWS, st.floats(1, 100), st.integers(1, 2), RATES | st.just(0.0), st.integers(0, 10**9))
def test_an_allowance_is_four_windows_or_what_the_rate_is_worth(
    window: int, ahead_s: float, growth: int, rate_rps: float, taken: int
) -> None:
    """It is never below the windows, nor above the rate for that time or above what was done that often."""
    allowance = choose_allowance(window, ahead_s, growth, rate_rps=rate_rps, taken=taken)
    assert allowance >= 4 * window
    assert allowance <= max(4 * window, ahead_s * rate_rps + 1)
    assert allowance <= max(4 * window, growth * taken)


@given(st.integers(0, 20_000), st.none() | st.floats(0.0, 100.0), WINDOWS, RATES)
def test_a_worker_may_go_on_while_its_coordinator_restarts_unless_one_was_lost(
    workers: int, lost_at: float | None, window: int, rate_rps: float
) -> None:
    """Until its next checkpoint or, where these are rare, its repetition, and 9 s; after a loss about 1 s."""
    pace = Pace()
    if lost_at is not None:
        pace.record_loss(lost_at)
    pace.adjust(workers, 100.0)
    batch = CheckpointBatch(
        worker="w1", incarnation="b1", run="r1", taken=10**9, rate_rps=rate_rps, checkpoints=[]
    )
    checkpoint_s = choose_checkpoint_s(workers)
    is_careful = lost_at is not None and lost_at > 70.0
    ahead_s = checkpoint_s + 9.0 + 1 / 3 * (checkpoint_s - 3.0)
    if is_careful:
        ahead_s = min(ahead_s, 1.5 * max(0.7, min(workers, 2000) / 200 + max(0, workers - 2000) / 50))
    assert pace.allow(batch, Spec(concurrency=window)) == max(4 * window, math.ceil(ahead_s * rate_rps))


@given(draw_fleets(st.none() | RATES), st.integers(1, 10**7))
def test_no_lease_is_above_thirty_seconds_of_work_but_for_one_window(
    fleet: list[Hands], pending: int
) -> None:
    """All leases together are no more than is pending, and those of one worker fill its hands but once."""
    chosen = deal(fleet, pending)
    assert all(size >= 1 for _, size in chosen)
    assert sum(size for _, size in chosen) <= pending
    given_before = Counter[str]()
    for hands, size in chosen:
        if hands.rate_rps is not None:
            assert size <= max(hands.window, 30 * hands.rate_rps)
        assert hands.untaken + given_before[hands.worker] < find_full(hands)
        given_before[hands.worker] += size


@given(st.integers(1, 100), WINDOWS, st.integers(1, 10**6), st.none() | RATES)
def test_all_workers_take_part_in_a_small_run(
    workers: int, window: int, pending: int, rate_rps: float | None
) -> None:
    """Equal workers get equal parts, but for one lease, as soon as there is a small lease for each."""
    most_rps = math.inf if rate_rps is None else rate_rps
    smallest = math.ceil(window / 10 if rate_rps is None else rate_rps / 2)
    assume(pending >= workers * smallest)
    fleet = [Hands(f"w{n}", f"b{n}", window, (), rate_rps, most_rps, 0, 0) for n in range(workers)]
    given_to = Counter[str]()
    chosen = deal(fleet, pending)
    for hands, size in chosen:
        given_to[hands.worker] += size
    assert len(given_to) == workers
    assert max(given_to.values()) - min(given_to.values()) <= max(size for _, size in chosen)


@given(draw_fleets(st.none() | RATES), st.integers(1, 10**7), st.integers(1, 20))
def test_leases_that_only_wait_for_their_last_answers_do_not_count(
    fleet: list[Hands], pending: int, waiting: int
) -> None:
    """However many there are, a worker gets what it would get without them."""
    busy = [
        each._replace(leases=(*(HeldLease(f"x{n}", 7, 7) for n in range(waiting)), *each.leases))
        for each in fleet
    ]
    assert [(each.worker, size) for each, size in deal(busy, pending)] == [
        (each.worker, size) for each, size in deal(fleet, pending)
    ]


@given(WINDOWS, st.integers(1, 10**9))
def test_leases_of_any_size_fill_the_window_as_far_as_messages_carry_them(
    window: int, range_size: int
) -> None:
    """A window of them may be in flight while two more can be taken."""
    held = find_most_held(window, range_size)
    assert held <= MOST_LEASES
    assert held == MOST_LEASES or held * range_size >= 3 * window


@given(draw_hands(100, 1, st.none() | st.floats(0.01, 300.0)), st.integers(1, 10))
def test_a_fixed_size_is_that_of_every_lease(hands: Hands, range_size: int) -> None:
    """There are as many leases as fill the hands, or as one worker may hold."""
    [filled] = fill([hands], range_size)
    added = filled.leases[len(hands.leases) :]
    assert {lease.end for lease in added} <= {range_size}
    assert filled.untaken >= find_full(hands) or len(filled.leases) == find_most_held(100, range_size)
    assert not added or filled.untaken < find_full(hands) + range_size


@given(draw_fleets(st.none() | RATES), st.floats(0.0, 1.0))
def test_what_was_just_given_is_not_asked_back(fleet: list[Hands], part: float) -> None:
    """Otherwise the same work would be dealt and asked back in turns, as long as the first answers take."""
    some = [each._replace(leases=(HeldLease("old", 0, int(part * (find_full(each) - 1))),)) for each in fleet]
    assert find_excess(fill(some)) == {}


@given(draw_fleets(st.none() | RATES))
def test_who_was_asked_for_excess_work_keeps_enough_and_is_asked_once(fleet: list[Hands]) -> None:
    """Nobody is asked for more than it has not taken, and what is kept fills its hands."""
    asked = find_excess(fleet)
    for before, after in zip(fleet, shorten_all(fleet, asked), strict=True):
        for old, new in zip(before.leases, after.leases, strict=True):
            assert old.taken <= new.end <= old.end
        if before.incarnation in asked:
            assert find_full(after) <= after.untaken < before.untaken
            assert after.untaken <= max(2 * after.window, 15 * after.most_rps + 1)
    assert find_excess(list(shorten_all(fleet, asked))) == {}


@given(draw_fleets(RATES))
def test_nobody_is_left_with_more_than_a_second_beyond_the_others(fleet: list[Hands]) -> None:
    """Who is asked keeps what all would end with together, never more is asked than is untaken."""
    even_s = sum(each.untaken for each in fleet) / sum(each.rate_rps or 0.0 for each in fleet)
    asked = find_uneven(fleet)
    for before, after in zip(fleet, shorten_all(fleet, asked), strict=True):
        assert before.rate_rps is not None
        for old, new in zip(before.leases, after.leases, strict=True):
            assert old.taken <= new.end <= old.end
        assert after.untaken <= (even_s + 1.0) * before.rate_rps + _ROUND_UP
        if before.incarnation in asked:
            assert after.untaken >= even_s * before.rate_rps - _ROUND_UP
        else:
            assert after == before


@given(draw_fleets(RATES), st.data())
def test_once_what_was_freed_is_dealt_all_end_together(fleet: list[Hands], data: st.DataObject) -> None:
    """The last one ends at most a second and a small lease after the time that all need together.

    That time is below what fills their hands, and the work is as uneven as it may be.
    """
    rates = [each.rate_rps or 0.0 for each in fleet]
    parts = data.draw(st.lists(st.integers(0, 100), min_size=len(fleet), max_size=len(fleet)), "parts")
    work = data.draw(st.floats(0.0, 8.0), "seconds") * sum(rates) / (sum(parts) or 1)
    uneven = [
        each._replace(leases=(HeldLease(f"l{each.worker}", 3, 3 + int(work * part)),))
        for each, part in zip(fleet, parts, strict=True)
    ]
    even_s = sum(each.untaken for each in uneven) / sum(rates)
    after = list(shorten_all(uneven, find_uneven(uneven)))
    pending = sum(each.untaken for each in uneven) - sum(each.untaken for each in after)
    while pending:
        chosen = deal(after, pending)
        assert chosen
        after = give(after, chosen)
        pending -= sum(size for _, size in chosen)
    for each, rate_rps in zip(after, rates, strict=True):
        assert each.untaken <= (even_s + 1.0) * rate_rps + max(1.0, rate_rps / 2) + _ROUND_UP

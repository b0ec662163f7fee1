"""The laws of the pure rules by which work is sized, allowed and moved among workers."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import assume, given
from hypothesis import strategies as st

from oku_coordinator.leasing.delivery import AskedEnds
from oku_coordinator.leasing.pace import Pace, choose_allowance, choose_checkpoint_s
from oku_coordinator.leasing.ranges.sizing import (
    Backlog,
    choose_sizes,
    find_excess,
    find_full,
    find_most_held,
    find_uneven,
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
def draw_backlogs(
    draw: st.DrawFn, window: int, number: int, rates: st.SearchStrategy[float | None]
) -> Backlog:
    """The backlog of one worker with up to four leases, some of which only wait for their last answers."""
    rate_rps = draw(rates)
    most_rps = draw(st.one_of(st.just(math.inf), RATES)) if rate_rps is None else rate_rps
    leases = {
        f"{number}.{place}": (taken, taken + untaken)
        for place, (taken, untaken) in enumerate(
            draw(st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 10**6)), max_size=4))
        )
    }
    taken = draw(st.integers(0, 10**6))
    return Backlog(f"w{number}", f"b{number}", window, leases, rate_rps, most_rps, taken, 0)


@st.composite
def draw_fleets(draw: st.DrawFn, rates: st.SearchStrategy[float | None]) -> list[Backlog]:
    """A few workers with the same window."""
    window = draw(WINDOWS)
    return [draw(draw_backlogs(window, number, rates)) for number in range(draw(st.integers(1, 6)))]


def deal(fleet: Sequence[Backlog], pending: int, range_size: int | None = None) -> list[tuple[Backlog, int]]:
    """Who gets leases of which size, with the first hundred of them."""
    weight = sum(find_weight(each, None) for each in fleet)
    return choose_sizes(fleet, pending, weight=weight, range_size=range_size, most=100)


def give(fleet: Sequence[Backlog], chosen: Sequence[tuple[Backlog, int]]) -> list[Backlog]:
    """The backlogs that have what was chosen for them."""
    sizes: dict[str, list[int]] = {each.worker: [] for each in fleet}
    for each, size in chosen:
        sizes[each.worker].append(size)
    return [
        each._replace(
            leases={
                **each.leases,
                **{f"{n}": (0, size) for n, size in enumerate(sizes[each.worker], len(each.leases))},
            }
        )
        for each in fleet
    ]


def fill(fleet: list[Backlog], range_size: int | None = None) -> list[Backlog]:
    """The backlogs once nobody gets any more."""
    while chosen := deal(fleet, _PENDING, range_size):
        fleet = give(fleet, chosen)
    return fleet


def shorten_all(fleet: Sequence[Backlog], asked: AskedEnds) -> Iterator[Backlog]:
    """The backlogs once all workers have done what they are asked."""
    for each in fleet:
        ends = asked.get(each.incarnation, {})
        yield each._replace(
            leases={lease: (taken, ends.get(lease, end)) for lease, (taken, end) in each.leases.items()}
        )


@given(WINDOWS, st.floats(1, 100), st.integers(1, 2), RATES | st.just(0.0), st.integers(0, 10**9))
def test_an_allowance_is_the_first_one_or_what_the_rate_is_worth(
    first: int, ahead_s: float, growth: int, rate_rps: float, taken: int
) -> None:
    """It is never below the first one, nor above the rate for that time or above what was done that often."""
    allowance = choose_allowance(first, ahead_s, growth, rate_rps=rate_rps, taken=taken)
    assert allowance >= first
    assert allowance <= max(first, ahead_s * rate_rps + 1)
    assert allowance <= max(first, growth * taken)


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
    windows = 4 if is_careful else 10
    spec = Spec(concurrency=window * max(1, workers))
    assert pace.allow(batch, spec) == max(windows * window, math.ceil(ahead_s * rate_rps))


@given(draw_fleets(st.none() | RATES), st.integers(1, 10**7))
def test_no_lease_is_above_thirty_seconds_of_work_but_for_one_window(
    fleet: list[Backlog], pending: int
) -> None:
    """All leases together are no more than is pending, and those of one worker fill its backlog but once."""
    chosen = deal(fleet, pending)
    assert all(size >= 1 for _, size in chosen)
    assert sum(size for _, size in chosen) <= pending
    given_before = Counter[str]()
    for backlog, size in chosen:
        if backlog.rate_rps is not None:
            assert size <= max(backlog.window, 30 * backlog.rate_rps)
        assert backlog.untaken + given_before[backlog.worker] < find_full(backlog)
        given_before[backlog.worker] += size


@given(st.integers(1, 100), WINDOWS, st.integers(1, 10**6), st.none() | RATES)
def test_all_workers_take_part_in_a_small_run(
    workers: int, window: int, pending: int, rate_rps: float | None
) -> None:
    """Equal workers get equal parts, but for one lease, as soon as there is a small lease for each."""
    most_rps = math.inf if rate_rps is None else rate_rps
    smallest = math.ceil(window / 10 if rate_rps is None else rate_rps / 2)
    assume(pending >= workers * smallest)
    fleet = [Backlog(f"w{n}", f"b{n}", window, {}, rate_rps, most_rps, 0, 0) for n in range(workers)]
    given_to = Counter[str]()
    chosen = deal(fleet, pending)
    for backlog, size in chosen:
        given_to[backlog.worker] += size
    assert len(given_to) == workers
    assert max(given_to.values()) - min(given_to.values()) <= max(size for _, size in chosen)


@given(draw_fleets(st.none() | RATES), st.integers(1, 10**7), st.integers(1, 20))
def test_leases_that_only_wait_for_their_last_answers_do_not_count(
    fleet: list[Backlog], pending: int, waiting: int
) -> None:
    """However many there are, a worker gets what it would get without them."""
    busy = [
        each._replace(leases={f"x{n}": (7, 7) for n in range(waiting)} | dict(each.leases)) for each in fleet
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


@given(draw_backlogs(100, 1, st.none() | st.floats(0.01, 300.0)), st.integers(1, 10))
def test_a_fixed_size_is_that_of_every_lease(backlog: Backlog, range_size: int) -> None:
    """There are as many leases as fill the backlog, or as one worker may hold."""
    [filled] = fill([backlog], range_size)
    added = list(filled.leases.values())[len(backlog.leases) :]
    assert {end for _, end in added} <= {range_size}
    assert filled.untaken >= find_full(backlog) or len(filled.leases) == find_most_held(100, range_size)
    assert not added or filled.untaken < find_full(backlog) + range_size


@given(draw_fleets(st.none() | RATES), st.floats(0.0, 1.0))
def test_what_was_just_given_is_not_asked_back(fleet: list[Backlog], part: float) -> None:
    """Otherwise the same work would be dealt and asked back in turns, as long as the first answers take."""
    some = [each._replace(leases={"old": (0, int(part * (find_full(each) - 1)))}) for each in fleet]
    assert find_excess(fill(some)) == {}


@given(draw_fleets(st.none() | RATES))
def test_who_was_asked_for_excess_work_keeps_enough_and_is_asked_once(fleet: list[Backlog]) -> None:
    """Nobody is asked for more than it has not taken, and what is kept fills its backlog."""
    asked = find_excess(fleet)
    for before, after in zip(fleet, shorten_all(fleet, asked), strict=True):
        for (taken, old_end), (_, end) in zip(before.leases.values(), after.leases.values(), strict=True):
            assert taken <= end <= old_end
        if before.incarnation in asked:
            assert find_full(after) <= after.untaken < before.untaken
            assert after.untaken <= max(2 * after.window, 15 * after.most_rps + 1)
    assert find_excess(list(shorten_all(fleet, asked))) == {}


@given(draw_fleets(RATES))
def test_nobody_is_left_with_more_than_a_second_beyond_the_others(fleet: list[Backlog]) -> None:
    """Who is asked keeps what all would end with together, never more is asked than is untaken."""
    even_s = sum(each.untaken for each in fleet) / sum(each.rate_rps or 0.0 for each in fleet)
    asked = find_uneven(fleet)
    for before, after in zip(fleet, shorten_all(fleet, asked), strict=True):
        assert before.rate_rps is not None
        for (taken, old_end), (_, end) in zip(before.leases.values(), after.leases.values(), strict=True):
            assert taken <= end <= old_end
        assert after.untaken <= (even_s + 1.0) * before.rate_rps + _ROUND_UP
        if before.incarnation in asked:
            assert after.untaken >= even_s * before.rate_rps - _ROUND_UP
        else:
            assert after == before


@given(draw_fleets(RATES), st.data())
def test_once_what_was_freed_is_dealt_all_end_together(fleet: list[Backlog], data: st.DataObject) -> None:
    """The last one ends at most a second and a small lease after the time that all need together.

    That time is below what fills their backlogs, and the work is as uneven as it may be.
    """
    rates = [each.rate_rps or 0.0 for each in fleet]
    parts = data.draw(st.lists(st.integers(0, 100), min_size=len(fleet), max_size=len(fleet)), "parts")
    work = data.draw(st.floats(0.0, 8.0), "seconds") * sum(rates) / (sum(parts) or 1)
    uneven = [
        each._replace(leases={f"l{each.worker}": (3, 3 + int(work * part))})
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

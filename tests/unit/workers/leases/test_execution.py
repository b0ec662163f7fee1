import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.messaging.lease import Lease
from oku_core.results.histogram import HIGHEST_US, Histogram, HistogramSnapshot
from oku_core.spec.spec import Spec
from oku_workers.leases import execution as hand_module
from oku_workers.leases.execution import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, TIMEOUT, Execution

BuildHand = Callable[[int, int], Execution]


def test_the_outcomes_have_the_order_of_the_account() -> None:
    """The indices of the hot path mean what they are called."""
    for index, outcome in enumerate(OUTCOMES):
        assert getattr(hand_module, outcome.name) == index
    assert OUTCOMES[TIMEOUT] == Outcome.TIMEOUT


def take_all(hand: Execution) -> None:
    """Take every index, as a feed does."""
    hand.next_index = hand.stop


def test_it_is_finished_by_its_last_answer(build_hand: BuildHand) -> None:
    """Not before every index was taken and has ended."""
    hand = build_hand(5, 7)
    hand.next_index = 6
    hand.answer(200, 10, 3, expected=True)
    assert not hand.finished.done()
    take_all(hand)
    assert not hand.finished.done()
    hand.answer(404, 20, 4, expected=False)
    assert hand.finished.done()
    assert (hand.outcomes, hand.statuses, hand.bytes_received) == ([1, 1, 0, 0, 0, 0], {200: 1, 404: 1}, 7)


@pytest.mark.parametrize("outcome", [TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR])
def test_a_failure_ends_an_index_as_an_answer_does(build_hand: BuildHand, outcome: int) -> None:
    """It counts as its outcome, and has neither status nor latency."""
    hand = build_hand(0, 1)
    take_all(hand)
    hand.fail(outcome)
    assert hand.finished.done()
    assert hand.outcomes[outcome] == sum(hand.outcomes) == 1
    assert (hand.statuses, hand.build_latency()) == ({}, HistogramSnapshot())


def test_what_is_given_back_is_in_rising_order(build_hand: BuildHand) -> None:
    """In whatever order requests are cut off."""
    hand = build_hand(0, 4)
    take_all(hand)
    for index in (2, 0, 3, 1):
        hand.give_back(index)
    assert hand.finished.done()
    assert hand.unfinished == [0, 1, 2, 3]
    assert sum(hand.outcomes) == 0


def test_a_withdrawn_one_waits_for_what_is_in_flight(build_hand: BuildHand) -> None:
    """It is finished when that has ended; what was not taken is none of its business."""
    hand = build_hand(0, 100)
    hand.next_index = 3
    hand.answer(200, 1, 0, expected=True)
    hand.withdraw()
    assert (hand.in_flight, hand.finished.done()) == (2, False)
    hand.fail(TIMEOUT)
    hand.give_back(2)
    assert (hand.in_flight, hand.finished.done()) == (0, True)


def test_an_untouched_one_is_finished_by_its_withdrawal(build_hand: BuildHand) -> None:
    """And a second withdrawal does nothing."""
    hand = build_hand(0, 100)
    hand.withdraw()
    assert hand.finished.done()
    hand.withdraw()
    assert not hand.has_begun


def test_an_abandoned_one_ends_with_its_error(build_hand: BuildHand) -> None:
    """And nothing that still comes for it does any harm."""
    hand = build_hand(0, 2)
    take_all(hand)
    error = ValueError("a fault of our own")
    hand.abandon(error)
    hand.abandon(KeyError())
    hand.fail(TIMEOUT)
    hand.answer(200, 1, 0, expected=True)
    assert hand.finished.exception() is error


def test_a_lease_that_ends_before_it_starts_has_no_index(build_hand: BuildHand) -> None:
    """A forged lease is empty at worst."""
    hand = build_hand(10, 3)
    assert hand.stop == hand.next_index == 10
    hand.settle()
    assert hand.finished.done()


@given(st.lists(st.integers(0, 5000) | st.integers(0, HIGHEST_US) | st.integers(HIGHEST_US, 2 * HIGHEST_US)))
def test_its_latencies_are_those_of_a_histogram(latencies_us: list[int]) -> None:
    """What is recorded in place is what `oku_core.results.histogram` records, its exact figures included."""
    loop = asyncio.new_event_loop()
    lease = Lease(id="l", run="r", start=0, stop=len(latencies_us), start_by=0.0, spec=Spec())
    hand, histogram = Execution(lease, loop.create_future()), Histogram()
    loop.close()
    take_all(hand)
    for latency_us in latencies_us:
        hand.answer(200, latency_us, 0, expected=True)
        histogram.record(latency_us)
    assert hand.build_latency() == histogram.build_latency()
    filled = {index for index, count in enumerate(hand.counts) if count}
    assert filled <= set(hand.bucket_range())

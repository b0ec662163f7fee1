import threading

import pytest

from oku_coordinator.broker.outbound_queue import OutboundQueue
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Control, Intervals, Stop
from oku_core.messaging.share import Share


class Clock:
    """Monotonic seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> OutboundQueue:
    """An empty queue."""
    return OutboundQueue(clock)


def take_all(queue: OutboundQueue) -> list[object]:
    """Everything that waits."""
    queue.end()
    taken: list[object] = []
    while messages := queue.get(2):
        taken.extend(messages)
    return taken


def test_control_joins_what_waits_for_the_same_process(queue: OutboundQueue) -> None:
    """Confirmations and limits never fall, ends never rise, whichever was put in first."""
    queue.put([Control(incarnation="b1", confirmed={"a": 3, "b": 1}, limits={"a": 10}, ends={"a": 5})])
    queue.put([Control(incarnation="b2", confirmed={"c": 1})])
    queue.put(
        [Control(incarnation="b1", confirmed={"a": 2, "d": 7}, limits={"a": 20}, ends={"a": 9, "b": 0})]
    )
    assert take_all(queue) == [
        Control(
            incarnation="b1",
            confirmed={"a": 3, "b": 1, "d": 7},
            limits={"a": 20},
            ends={"a": 5, "b": 0},
        ),
        Control(incarnation="b2", confirmed={"c": 1}),
    ]


def test_what_a_worker_was_told_is_kept_where_newer_control_does_not_say(queue: OutboundQueue) -> None:
    """Its share, and that it may leave."""
    first = Share(run="r1", number=1, rank=0, of=2, is_alone=True)
    second = Share(run="r1", number=2, rank=0, of=1, is_alone=False)
    queue.put(
        [Control(incarnation="b1", share=first, may_leave=True), Control(incarnation="b2", share=first)]
    )
    queue.put([Control(incarnation="b1", ends={"a": 5}), Control(incarnation="b2", share=second)])
    assert take_all(queue) == [
        Control(incarnation="b1", ends={"a": 5}, share=first, may_leave=True),
        Control(incarnation="b2", share=second),
    ]


def test_a_newer_order_takes_the_place_of_an_older_one(queue: OutboundQueue) -> None:
    """Orders to stop different runs are different orders."""
    older, newer = (Stop(run="r1", up_to=number, grace_s=1.0) for number in (1, 2))
    other = Stop(run="r2", up_to=1, grace_s=1.0)
    intervals = [Intervals(number=number, heartbeat_s=1.0, checkpoint_s=3.0) for number in (1, 2)]
    for order in (older, intervals[0], other, newer, intervals[1]):
        queue.put([order])
    assert take_all(queue) == [newer, intervals[1], other]


def test_every_message_with_leases_is_sent(queue: OutboundQueue) -> None:
    """In the order in which they came."""
    batches = [LeaseBatch(run="r1", incarnation="b1", leases=[], start_by=float(at)) for at in range(3)]
    for batch in batches:
        queue.put([batch])
    assert take_all(queue) == batches


def test_the_oldest_message_says_how_long_the_broker_has_been_waited_for(
    queue: OutboundQueue, clock: Clock
) -> None:
    """What joins it does not make it younger."""
    assert queue.measure_wait_s() == 0.0
    queue.put([Control(incarnation="b1")])
    clock.now = 2.0
    queue.put([Control(incarnation="b1")])
    clock.now = 3.0
    assert queue.measure_wait_s() == 3.0
    assert queue.drop() == 1
    assert queue.measure_wait_s() == 0.0


def test_who_waits_for_a_message_gets_it(queue: OutboundQueue) -> None:
    """And ends when the queue does."""
    taken: list[object] = []

    def take() -> None:
        while messages := queue.get(1):
            taken.extend(messages)

    thread = threading.Thread(target=take)
    thread.start()
    queue.put([Control(incarnation="b1")])
    queue.end()
    thread.join(5.0)
    assert taken == [Control(incarnation="b1")]
    assert not thread.is_alive()


def test_control_that_renews_a_process_does_so_whatever_joins_it() -> None:
    """It is not lost among newer news."""
    queue = OutboundQueue(lambda: 0.0)
    queue.put([Control(incarnation="a1", renew=True)])
    queue.put([Control(incarnation="a1", may_leave=True)])
    assert queue.get(10) == [Control(incarnation="a1", may_leave=True, renew=True)]

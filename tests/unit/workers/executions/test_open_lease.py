import asyncio

from tests.kit.outcomes import make_counts
from tests.kit.workers.checkpoint_book import LeaseAccount

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import DISCONNECTED, OK, build_no_counts
from oku_core.messaging.checkpoint import LONGEST_REFUSAL, Checkpoint
from oku_core.messaging.checkpoint_faults import find_fault
from oku_core.messaging.lease import Lease
from oku_core.messaging.progress import LeaseProgress
from oku_core.process.redaction import hide
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease


class Desk:
    """A lease of two ranges in hand, with the clock of a test, and what its coordinator makes of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = 100.0
        lease = Lease(id="r1.1.aa", run="r1", ranges=[(10, 13), (50, 60)], limit=13)
        self.execution = Execution(lease, Spec(), loop.create_future(), lambda: self.now)
        self.lease = OpenLease(self.execution)
        self.account = LeaseAccount(lease.build_ranges())
        self.in_flight: list[int] = []

    def take(self, count: int) -> None:
        """Take indices."""
        for _ in range(count):
            if self.execution.next_coordinate == self.execution.stop:
                assert self.execution.begin_segment()
            self.in_flight.append(self.execution.next_coordinate)
            self.execution.next_coordinate += 1

    def answer(self, index: int) -> None:
        """One request is answered."""
        self.in_flight.remove(index)
        self.execution.tally.answer(OK, 200, 1500, 10)

    def build(self) -> Checkpoint:
        """A checkpoint, which must be true."""
        checkpoint = self.lease.build_checkpoint(self.now, self.in_flight, 80.0)
        self.account.take(checkpoint)
        return checkpoint


def test_checkpoints_tell_the_state(loop: asyncio.AbstractEventLoop) -> None:
    """Heartbeats say that it has come."""
    desk = Desk(loop)
    assert (desk.lease.has_news, desk.lease.is_confirmed) == (False, True)
    assert desk.lease.build_progress() == LeaseProgress(0, 13, build_no_counts())
    # A checkpoint is the state of its instant.
    desk = Desk(loop)
    desk.take(5)
    desk.answer(11)
    desk.now = 101.5
    desk.in_flight.reverse()
    checkpoint = desk.build()
    assert (checkpoint.lease, checkpoint.sequence, checkpoint.is_final) == ("r1.1.aa", 1, False)
    assert (checkpoint.done, checkpoint.end, checkpoint.in_flight) == (5, 13, [0, 2, 3, 4])
    [part] = checkpoint.parts
    assert (part.outcomes, part.statuses, part.bytes_received) == (make_counts(1), {"200": 1}, 10)
    assert part.histogram(Time.LATENCY).sum_us == 1500
    figures = checkpoint.figures
    assert (figures.started_at, figures.ended_at, figures.peak_rss_mb) == (100.0, 101.5, 80.0)
    # A final checkpoint says what was given back.
    desk = Desk(loop)
    desk.take(5)
    desk.answer(10)
    desk.in_flight.remove(50)
    desk.execution.tally.fail(DISCONNECTED, 50, "reset")
    desk.execution.shorten(0)
    assert not desk.build().is_final
    for index in list(desk.in_flight):
        desk.execution.give_back(index)
    desk.in_flight.clear()
    checkpoint = desk.build()
    assert (checkpoint.is_final, checkpoint.done, checkpoint.end) == (True, 5, 5)
    assert checkpoint.in_flight == [1, 2, 4]
    assert checkpoint.parts[0].outcomes == make_counts(1, disconnected=1)
    assert checkpoint.parts[0].histogram(Time.LATENCY).total == 1


def test_the_number_of_a_checkpoint(loop: asyncio.AbstractEventLoop) -> None:
    """It is the same message: who has it already sees that it is a copy."""
    desk = Desk(loop)
    desk.take(2)
    first = desk.build()
    desk.now += 5
    assert desk.build() is first
    desk.answer(10)
    assert desk.build().sequence == 2
    # Who is asked answers with a number of its own.
    desk = Desk(loop)
    desk.take(2)
    desk.build()
    desk.lease.is_asked = True
    assert desk.lease.has_news
    assert desk.build().sequence == 2
    assert desk.build().sequence == 2
    # News are what the broker has not.
    desk = Desk(loop)
    desk.take(2)
    assert desk.lease.has_news
    sequence = desk.build().sequence
    assert desk.lease.has_news
    desk.lease.on_sent(sequence)
    assert (desk.lease.has_news, desk.lease.is_confirmed) == (False, False)
    desk.lease.confirm(sequence)
    assert (desk.lease.has_news, desk.lease.is_confirmed) == (False, True)


def test_parts_are_told_until_they_are_confirmed(loop: asyncio.AbstractEventLoop) -> None:
    """It comes again when it has changed, with the seconds that have changed, and no others."""
    desk = Desk(loop)
    desk.take(3)
    desk.lease.count_seconds(desk.now)
    desk.answer(10)
    desk.now = 101.0
    desk.lease.confirm(desk.build().sequence)
    desk.take(1)
    assert desk.build().parts == []
    desk.answer(11)
    desk.now = 102.0
    [part] = desk.build().parts
    assert part.outcomes[0] == 2
    assert part.per_second == {101: make_counts(1)}
    # A part that is not confirmed is told again.
    desk = Desk(loop)
    desk.take(3)
    desk.answer(10)
    desk.build()
    desk.now = 103.0
    desk.lease.count_seconds(desk.now)
    desk.answer(11)
    [part] = desk.build().parts
    assert part.per_second == {100: make_counts(1), 103: make_counts(1)}
    # It can be forgotten when its end is known.
    desk = Desk(loop)
    desk.take(1)
    desk.lease.confirm(desk.build().sequence)
    desk.lease.confirm(99)
    desk.execution.shorten(0)
    desk.answer(10)
    final = desk.build()
    assert (final.is_final, desk.lease.is_open, desk.lease.is_forgettable) == (True, False, False)
    desk.lease.confirm(final.sequence)
    assert desk.lease.is_forgettable


def test_a_refusal_is_final_and_short(loop: asyncio.AbstractEventLoop) -> None:
    """It is cut to what a checkpoint may say."""
    desk = Desk(loop)
    desk.lease.refusal = "no such file " * 100
    desk.execution.shorten(0)
    checkpoint = desk.build()
    assert (checkpoint.is_final, checkpoint.done, checkpoint.end) == (True, 0, 0)
    assert (len(checkpoint.refusal), checkpoint.figures.started_at) == (LONGEST_REFUSAL, 0.0)
    # A refusal is one printable line.
    desk = Desk(loop)
    hide("lease-hunter2")
    desk.lease.refusal = "RuntimeError: \x1b[31mno\x00\n  file lease-hunter2"
    desk.execution.shorten(0)
    checkpoint = desk.build()
    assert checkpoint.refusal == "RuntimeError: ?[31mno? file ***"
    assert find_fault(checkpoint, desk.execution.ranges.length) is None
    # What was given back untouched is named. In order, among what is in flight.
    desk = Desk(loop)
    desk.take(5)
    for index in (12, 50, 10):
        desk.in_flight.remove(index)
        desk.execution.give_back(index, is_untouched=index != 50)
    checkpoint = desk.build()
    assert (checkpoint.in_flight, checkpoint.untouched) == ([0, 1, 2, 3, 4], [0, 2])


def test_inner_requests_are_news_although_no_iteration_has_ended(loop: asyncio.AbstractEventLoop) -> None:
    """Each name is told of until a checkpoint with all of it is confirmed."""
    desk = Desk(loop)
    desk.take(2)
    first = desk.build()
    assert first.inner == []
    desk.execution.find_inner("", "login").add(OK, 200, 1500, 10)
    assert desk.lease.has_news
    second = desk.build()
    assert [(part.name, part.outcomes) for part in second.inner] == [("login", make_counts(1))]
    assert list(second.inner[0].per_second.values()) == [make_counts(1)]
    desk.execution.find_inner("", "orders").add(OK, 200, 1500, 10)
    assert [part.name for part in desk.build().inner] == ["login", "orders"]
    desk.lease.confirm(second.sequence)
    desk.execution.find_inner("", "orders").add(OK, 200, 1500, 10)
    last = desk.build()
    assert [(part.name, part.outcomes) for part in last.inner] == [("orders", make_counts(2))]
    # A traceback is told until it is confirmed. A lost checkpoint loses none.
    desk = Desk(loop)
    desk.take(3)
    desk.execution.keep_traceback("ValueError", "File x.py")
    first = desk.build()
    desk.execution.keep_traceback("KeyError", "File y.py")
    desk.answer(10)
    assert (first.tracebacks, desk.build().tracebacks) == (
        {"ValueError": "File x.py"}, {"ValueError": "File x.py", "KeyError": "File y.py"},
    )  # fmt: skip
    desk.lease.confirm(first.sequence)
    desk.answer(11)
    assert desk.build().tracebacks == {"KeyError": "File y.py"}

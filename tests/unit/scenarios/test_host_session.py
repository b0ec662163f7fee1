import os
from collections.abc import Iterator
from typing import Any

import pytest

from oku.host_session import MOST_NAMES, HostSession, RequestResult
from oku_core.messaging.checkpoint import LONGEST_NAME, LONGEST_TRACEBACK, OTHER_NAMES
from oku_core.process.redaction import hide
from oku_core.user_code.messages import (
    DROPPED,
    ENDED_FIELDS,
    MOST_AHEAD,
    MOST_BYTES,
    NO_TEXT,
    OUTSIDE,
    UNTOUCHED,
    Cut,
    FrameReader,
    FromHost,
    Hand,
    Report,
    SetUsers,
    StopHost,
    frame,
)
from oku_core.user_code.slots import Slots, create_slots

OK, EXCEPTION = 0, 9
S = 10**9


class Bench:
    """A session with a clock of its own, and the worker that reads its reports.

    Attributes:
        now_ns: what the clock says.
        texts: those of all reports.
    """

    def __init__(self, slots: Slots, users: int = 4, *, is_ahead: bool = False) -> None:
        self.now_ns = 100 * S
        self.slots = slots
        self.session = HostSession(slots, users, is_ahead=is_ahead, now_ns=lambda: self.now_ns)
        self.texts: list[str] = []
        self._reader = FrameReader(FromHost)

    def hand(self, *slots: int) -> None:
        """Hand out iterations in these slots, whose indices are ten times as high."""
        self.session.receive(frame(Hand([each for slot in slots for each in (slot, slot * 10, 0)])))

    def report(self, idle: int = 0) -> Report:
        """What it says now."""
        [report] = self._reader.feed(self.session.encode_report(idle))
        assert isinstance(report, Report)
        self.texts += report.texts
        return report


@pytest.fixture
def slots() -> Iterator[Slots]:
    """Memory as a worker and its host share it."""
    file = create_slots()
    slots = Slots(file)
    os.close(file)
    yield slots
    slots.close()


@pytest.fixture
def bench(slots: Slots) -> Bench:
    """Four users."""
    return Bench(slots)


def test_iterations_begin_in_their_order_and_say_so_in_their_slots(bench: Bench) -> None:
    """A worker knows of a host that was killed what it had begun."""
    bench.hand(3, 1)
    first = bench.session.start_next()
    assert first is not None
    assert (first.slot, first.index, first.begun_ns) == (3, 30, 100 * S)
    assert (bench.slots.begun_ns(3), bench.slots.begun_ns(1)) == (100 * S, 0)
    assert bench.session.waiting == 1
    assert bench.session.find(3) is first
    assert bench.session.start_next() is not None
    assert bench.session.start_next() is None


def test_messages_may_come_in_pieces(bench: Bench) -> None:
    """A stream has no edges."""
    data = frame(Hand([0, 5, 0])) + frame(SetUsers(9))
    found = [
        message for place in range(len(data)) for message in bench.session.receive(data[place : place + 1])
    ]
    assert (bench.session.waiting, bench.session.users, found) == (1, 9, [SetUsers(9)])
    assert bench.session.receive(frame(StopHost())) == [StopHost()]


def test_an_iteration_ends_once(bench: Bench) -> None:
    """With its outcome, its times and its reason; whoever ends it again changes nothing."""
    bench.hand(0)
    iteration = bench.session.start_next()
    assert iteration is not None
    bench.now_ns += 5_000_000
    bench.session.end(iteration, EXCEPTION, "KeyError", "Traceback…")
    bench.session.end(iteration, OK)
    report = bench.report()
    assert report.ended == [0, EXCEPTION, 100 * S, 5_000, 0]
    assert (bench.texts, report.tracebacks) == (["KeyError"], {0: "Traceback…"})
    assert bench.report().ended == []


def test_one_whose_slot_has_another_one_by_now_does_not_end_that(bench: Bench) -> None:
    """A task that was given up may end late."""
    bench.hand(0)
    old = bench.session.start_next()
    assert old is not None
    bench.session.end(old, OK)
    bench.hand(0)
    new = bench.session.start_next()
    bench.session.end(old, EXCEPTION, "late")
    assert bench.session.find(0) is new
    assert bench.report().ended[1::5] == [OK]


def test_a_report_says_how_many_users_have_nothing_to_do(bench: Bench) -> None:
    """Not those for whom an iteration waits already."""
    assert bench.report(idle=3).idle == 3
    bench.hand(0, 1)
    assert [bench.report(idle=idle).idle for idle in (3, 2, 0)] == [1, 0, 0]


def test_texts_are_sent_once(bench: Bench) -> None:
    """Names and reasons have numbers; each reason has the first traceback alone."""
    for slot in range(3):
        bench.hand(slot)
        iteration = bench.session.start_next()
        assert iteration is not None
        bench.session.record(iteration, RequestResult("page", 1, 500, 7, 20, "status 500"))
        bench.session.end(iteration, EXCEPTION, "KeyError", f"traceback {slot}")
    report = bench.report()
    assert report.texts == ["page", "status 500", "KeyError"]
    assert report.requests == [each for slot in range(3) for each in (slot, 0, 1, 500, 7, 20, 1)]
    assert report.ended[4::5] == [2, 2, 2]
    assert report.tracebacks == {2: "traceback 0"}
    bench.session.record(None, RequestResult("page", OK, 200, 7))
    assert bench.report().requests == [OUTSIDE, 0, OK, 200, 7, 0, NO_TEXT]


def test_a_request_counts_outside_once_its_iteration_has_ended(bench: Bench) -> None:
    """Also if its slot has another one by then."""
    bench.hand(0)
    old = bench.session.start_next()
    assert old is not None
    bench.session.end(old, OK)
    bench.hand(0)
    bench.session.start_next()
    bench.session.record(old, RequestResult("late", OK, 200, 7))
    assert bench.report().requests[0] == OUTSIDE


def test_names_and_reasons_are_bounded(bench: Bench) -> None:
    """Whoever writes the index into them has the rest under one."""
    for number in range(MOST_NAMES + 50):
        bench.session.record(None, RequestResult(f"page {number}", OK, 200, 7))
    assert bench.report().requests[1::7][MOST_NAMES - 1 :] == [MOST_NAMES - 1] + [MOST_NAMES] * 50
    assert bench.texts[-1] == OTHER_NAMES
    for number in range(2_000):
        bench.session.record(None, RequestResult("page 0", 1, 500, 7, 0, f"reason {number}"))
    assert len(bench.report().texts) == 501
    assert bench.texts[-1] == "other"


def test_what_waits_is_dropped_at_once_when_it_is_cut_off(bench: Bench) -> None:
    """It has not begun; of the others the host is told."""
    bench.hand(0, 1, 2)
    iteration = bench.session.start_next()
    assert iteration is not None
    assert bench.session.receive(frame(Cut([0, 1, 7]))) == [Cut([0])]
    bench.session.drop(iteration)
    assert bench.report().ended == [1, UNTOUCHED, 0, 0, NO_TEXT, 0, DROPPED, 100 * S, 0, NO_TEXT]
    assert bench.session.waiting == 1


def test_as_many_are_asked_for_as_users_are_idle(bench: Bench) -> None:
    """Less those that were asked for already, and those that wait."""
    assert bench.report(idle=4).wanted == 4
    assert bench.report(idle=4).wanted == 0
    assert not bench.session.wants_more(4)
    bench.hand(0, 1)
    assert bench.report(idle=4).wanted == 0
    bench.session.start_next()
    assert bench.report(idle=4).wanted == 1
    bench.session.receive(frame(SetUsers(4)))  # the worker has forgotten what was asked for
    assert bench.report(idle=4).wanted == 3


@pytest.mark.parametrize(("is_ahead", "ahead"), [(True, 12), (False, 0)])
def test_work_for_the_next_moment_is_asked_for_ahead(slots: Slots, ahead: int, *, is_ahead: bool) -> None:
    """As much as ends in the time that handing out takes."""
    bench = Bench(slots, is_ahead=is_ahead)
    for slot in range(300):
        bench.hand(slot)
        iteration = bench.session.start_next()
        assert iteration is not None
        bench.session.end(iteration, OK)
    bench.now_ns += S
    assert bench.report().wanted == ahead


@pytest.mark.heavy
def test_no_more_is_asked_for_ahead_than_a_worker_keeps_in_mind(slots: Slots) -> None:
    """What a worker forgot would be waited for without end: it keeps the users' and so many more."""
    bench = Bench(slots, is_ahead=True)
    for _ in range(300_000):
        bench.hand(0)
        iteration = bench.session.start_next()
        assert iteration is not None
        bench.session.end(iteration, OK)
    bench.now_ns += S // 10
    assert bench.report(idle=4).wanted == 4 + MOST_AHEAD


def test_how_late_the_event_loop_was_is_told_once(bench: Bench) -> None:
    """The worst since the last report."""
    bench.session.late_us, bench.session.busy_us = 700, 5
    report = bench.report()
    assert (report.late_us, report.busy_us) == (700, 5)
    assert bench.report().late_us == 0
    assert report.cpu_us > 0


def test_a_session_knows_whether_there_is_news(bench: Bench) -> None:
    """What has ended, or was asked, since the last report."""
    assert not bench.session.has_news
    bench.session.record(None, RequestResult("page", OK, 200, 7))
    assert bench.session.has_news
    bench.report()
    assert not bench.session.has_news


@pytest.mark.parametrize("text", ["caf\udce9", "x" * (MOST_BYTES + 1), 5])
def test_a_text_that_no_message_can_hold_is_changed_so_that_one_can(bench: Bench, text: Any) -> None:
    """User code has it from a header that is not UTF-8, from a body, or has not thought of types."""
    bench.hand(0)
    iteration = bench.session.start_next()
    assert iteration is not None
    bench.session.record(iteration, RequestResult(text, EXCEPTION, 0, 1, reason=text))
    bench.session.end(iteration, EXCEPTION, text, f"ValueError: {text}")
    report = bench.report()
    assert len(report.ended) == ENDED_FIELDS
    assert bench.texts == [str(text).replace("\udce9", "\\udce9")[:LONGEST_NAME]] * 2


@pytest.mark.parametrize("before", [0, LONGEST_NAME - 10])
def test_no_part_of_a_secret_is_in_a_report(bench: Bench, before: int) -> None:
    """Names, reasons and tracebacks are redacted before they are cut."""
    hide("session-hunter2-0815")
    text = "x" * before + "session-hunter2-0815"
    bench.hand(0)
    iteration = bench.session.start_next()
    assert iteration is not None
    bench.session.record(iteration, RequestResult(text, 1, 500, 7, 20, f"a{text}"))
    bench.session.end(iteration, EXCEPTION, f"b{text}", f"{'x' * (LONGEST_TRACEBACK - 10)}{text}")
    report = bench.report()
    assert "sess" not in repr(report)
    assert "***" in report.texts[0]

"""What a run with a rate sent in each second, beside the due times of its schedule, computed one by one."""

from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from tests.kit.coordinators.transactions import read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_core.schedule.lane import Lane
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave
from oku_core.spec.load import build_schedule

_SLACK_S = 0.025
"""So late may a busy machine be: what is due so shortly before a second ends may be sent in the next."""


class Second(NamedTuple):
    """A second of a run.

    Attributes:
        at: the Unix time.
        sent: how many requests were sent in it.
        due: how many were due.
        least: how many at least were sent, if the machine was in time.
        most: how many at most were sent then.
    """

    at: int
    sent: int
    due: int
    least: int
    most: int

    @property
    def is_as_planned(self) -> bool:
        """Whether it has what is due in it, to one request."""
        return self.least <= self.sent <= self.most


def list_seconds(ledger_file: Path, run: str, slack_s: float = _SLACK_S) -> list[Second]:
    """The whole seconds of all periods of activity of a run, those that come twice once.

    Args:
        ledger_file: where it is accounted.
        run: its id.
        slack_s: how late requests may be.
    """
    ledger = Ledger(ledger_file, read_only=True)
    try:
        snapshot = read(ledger, fetch_snapshot, run)
    finally:
        ledger.close()
    assert snapshot.course is not None
    is_complete = snapshot.lengths.accounted == snapshot.record.requests
    return _list_seconds(
        snapshot.course, build_schedule(snapshot.record.spec), slack_s, is_complete=is_complete
    )


def assert_as_planned(ledger_file: Path, run: str) -> list[Second]:
    """Every second of a run has what is due in it; gives the seconds."""
    seconds = list_seconds(ledger_file, run)
    missed = [second for second in seconds if not second.is_as_planned]
    assert not missed, f"{missed} of {seconds}"
    return seconds


def list_dues_s(schedule: Schedule) -> list[float]:
    """When each arrival of a schedule is due, in rising order, as a single lane with all of them has it."""
    ends = tuple(schedule.count_before_block(block + 1) for block in range(schedule.blocks))
    lane = Lane(schedule, Wave(0, schedule.requests, 1, 0, ends), 0)
    return [due_ns / 1e9 for _, due_ns in lane.iter_dues(lane.start, lane.stop)]


def _list_seconds(course: Course, schedule: Schedule, slack_s: float, *, is_complete: bool) -> list[Second]:
    """Those that lie in a period as a whole, and the one in which a complete run has ended."""
    dues_s, sent = list_dues_s(schedule), {row.second: row.sent for row in course.series}
    length_s, reached_s = float(schedule.duration_s), 0.0
    seconds: list[Second] = []
    for period in course.periods:
        stop_s = length_s if period.stop_s is None else min(period.stop_s, length_s)
        at = round(period.build_period().unix_time(round(max(reached_s, period.offset_s) + 0.499999)))
        clock = period.build_period()
        while clock.schedule_s(at + 1) <= stop_s + 1e-6 or (
            is_complete
            and period is course.periods[-1]
            and clock.schedule_s(at) < stop_s
            and clock.schedule_s(at + 1) <= length_s + 1e-6
        ):
            seconds.append(_build_second(period, dues_s, at, sent.get(at, 0), slack_s))
            at += 1
        reached_s = max(reached_s, stop_s)
    return seconds


def _build_second(period: PeriodRecord, dues_s: list[float], at: int, sent: int, slack_s: float) -> Second:
    begin_s = period.build_period().schedule_s(at)
    early, begin, soon, end = (
        bisect_left(dues_s, time_s - 1e-6)
        for time_s in (begin_s - slack_s, begin_s, begin_s + 1 - slack_s, begin_s + 1)
    )
    due = end - begin
    return Second(at, sent, due, due - max(1, end - soon), due + max(1, begin - early))

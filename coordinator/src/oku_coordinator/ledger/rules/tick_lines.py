"""The lines of ticks: when they enter the outbox, and with which counts.

A tick gets its line once the workers have reported past its second, with the counts of the series. Later
counts get their own line for the same second. Line and mark are one transaction, so all lines of a run sum to
its series, which is the account once the run is at rest.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import outbox_table, run_table, schedule_table
from oku_coordinator.ledger.tables.accounts import series_table
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.results.lines import (
    NO_TIME,
    Fields,
    LineKind,
    TimeProgress,
    build_late_tick_line,
    build_tick_line,
)
from oku_core.results.sample import Sample, decode_kept
from oku_core.results.series import SeriesRow, add_rows, assign, find_seconds
from oku_core.spec.load_plan import ClockPeriod, LoadPlan, build_load_plan, read_clock_s

_SECOND_NS = 10**9
_MOST_LATE_S = 0.25
"""Ticks are due at whole seconds, and usually a few milliseconds late."""


class WallClockPlan:
    """The plan of a run by Unix time.

    Args:
        plan: the plan by the run's clock.
        periods: the periods of that clock, oldest first.
    """

    def __init__(self, plan: LoadPlan, periods: Iterable[ClockPeriod]) -> None:
        self._plan = plan
        self._periods = tuple(periods)

    def count(self, first: float, stop: float) -> int | None:
        """The number of requests planned in `[first, stop)`; None without a rate.

        Where the clock was set back when the run continued, nothing counts twice.
        """
        return self._plan.count(self._read_most_s(first), self._read_most_s(stop))

    def find_phase(self, at: float) -> str:
        """The phase at a time; empty if the run has only one, without a name."""
        return self._plan.find_phase(self._read_s(at))

    def add_to(self, sample: Sample) -> Sample:
        """The same sample with the plan of its seconds."""
        first, stop = find_whole(sample.at - sample.seconds), find_whole(sample.at)
        return msgspec.structs.replace(
            sample, requests_planned=self.count(first, stop), phase=self.find_phase(first)
        )

    def measure_progress(self, sample: Sample) -> TimeProgress:
        """The progress of the run at the end of a sample, if it has a rate or a time limit."""
        if (length_s := self._plan.length_s) is None:
            return NO_TIME
        clock_s = min(length_s, self._read_s(sample.at))
        return TimeProgress(clock_s, length_s, self._plan.find_unused(sample.requests_total))

    def _read_s(self, at: float) -> float:
        return read_clock_s(self._periods, at)

    def _read_most_s(self, at: float) -> float:
        """The highest time of the clock until then."""
        return max((period.measure_s(at) for period in self._periods if period.starts_at <= at), default=0.0)


def find_whole(at: float) -> float:
    """The whole second at which a tick was due; the time itself if it was not on time."""
    whole = round(at)
    return whole if abs(at - whole) < _MOST_LATE_S else at


def fetch_planned_seconds(transaction: Transaction, run: str) -> WallClockPlan:
    """The plan of a run, which must be there."""
    plan = build_load_plan(fetch_spec(transaction, run))
    return WallClockPlan(plan, schedule_table.fetch_periods(transaction, run))


def put_settled(transaction: Transaction, run: str, settled_to: float) -> None:
    """Put the ticks that end by `settled_to` into the outbox, and later counts of earlier ones.

    Args:
        transaction: to write in.
        run: its id; a run that is not published has no lines.
        settled_to: Unix time; `math.inf` for a run at rest, to leave nothing behind.
    """
    row = transaction.select_one("SELECT published_to, late_lines FROM histories WHERE run = ?", run)
    published_to, late_lines = (row["published_to"], row["late_lines"]) if row else (0.0, 0)
    due = _fetch_due(transaction, run, published_to, settled_to)
    published_to = due[-1][1].at if due else published_to
    stop = math.inf if settled_to == math.inf else math.floor(published_to + 0.5)
    increments = series_table.pop_increments(transaction, run, stop)
    if (due or increments) and outbox_table.is_published(transaction, run):
        planned, head = fetch_planned_seconds(transaction, run), run_table.fetch_head(transaction, run)
        seen, unseen = assign(find_seconds([sample for _, sample in due]), increments)
        for number, (state, sample) in enumerate(due):
            counted = planned.add_to(add_rows(sample, seen.get(number, [])))
            line = build_tick_line(state, head, counted, planned.measure_progress(counted))
            outbox_table.put(transaction, run, LineKind.TICK, sample.at, [line])
        late = list(_build_late(transaction, run, chain.from_iterable(unseen.values()), late_lines, planned))
        outbox_table.enter(transaction, run, LineKind.TICK, late)
        late_lines += len(late)
    # If a run is published later, its lines start then: the current counts count as published.
    if due or increments:
        transaction.execute(
            "INSERT INTO histories (run, published_to, late_lines) VALUES (?1, ?2, ?3)"
            " ON CONFLICT DO UPDATE SET published_to = ?2, late_lines = ?3",
            run, published_to, late_lines,
        )  # fmt: skip


def _fetch_due(
    transaction: Transaction, run: str, after: float, until: float
) -> Sequence[tuple[str, Sample]]:
    rows = transaction.select(
        "SELECT body, state FROM samples WHERE run = ? AND at > ? AND at <= ? ORDER BY at", run, after, until
    )
    return [(row["state"], decode_kept(row["body"])) for row in rows]


def _build_late(
    transaction: Transaction, run: str, rows: Iterable[SeriesRow], before: int, planned: WallClockPlan
) -> Iterator[tuple[int, Fields]]:
    """A line for each row, at its end; its time contains the number of the line, so times are unique.

    `before` is how many such lines there were.
    """
    for number, row in enumerate(rows, before + 1):
        end = row.second + row.seconds
        sample = _find_sample(transaction, run, row.second)
        # Only one line has the length of a second: the line of its sample, or its first one.
        is_seen = sample is not None and find_seconds([sample])[0][0] <= row.second
        seconds = 0 if is_seen or not row.is_new else row.seconds
        since_s = 0.0 if sample is None else max(0.0, sample.at - (end if seconds else row.second))
        active_s = None if sample is None else max(0.0, sample.active_s - since_s)
        yield (
            end * _SECOND_NS + number % _SECOND_NS,
            build_late_tick_line(
                row.outcomes,
                row.sent,
                seconds,
                active_s,
                requests_planned=planned.count(row.second, end) if seconds else None,
                phase=planned.find_phase(row.second),
            ),
        )


def _find_sample(transaction: Transaction, run: str, second: int) -> Sample | None:
    """The first sample that ends with a second or later."""
    row = transaction.select_one(
        "SELECT body FROM samples WHERE run = ? AND at > ? ORDER BY at LIMIT 1", run, second + 0.5
    )
    return decode_kept(row["body"]) if row else None

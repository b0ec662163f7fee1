"""The lines of ticks: when they are put into the outbox, and with which counts.

A tick has its line once the workers have reported past its second, with what the series has of it. Counts
that come later have a line of their own for the same second. Line and mark are one transaction, so all lines
of a run sum to what the series had in all, which is the account once the run is at rest.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from oku_coordinator.ledger.rules.planned_seconds import PlanByTime, fetch_planned_seconds
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import outbox_table, run_table, series_table
from oku_core.results.lines import Fields, LineKind, build_late_tick_line, build_tick_line
from oku_core.results.sample import Sample, build_rates, decode_kept
from oku_core.results.series import SeriesRow, add_counts, assign, find_seconds

_SECOND_NS = 10**9


def put_settled(transaction: Transaction, run: str, settled_to: float) -> None:
    """Put the ticks of a run into the outbox that end by `settled_to`, and counts of earlier ones.

    Args:
        transaction: to do it in.
        run: its id; a run that is not published has no lines.
        settled_to: Unix time; `math.inf` for a run at rest, of which nothing may be left.
    """
    row = transaction.select_one("SELECT published_to, late_lines FROM histories WHERE run = ?", run)
    published_to, late_lines = (row["published_to"], row["late_lines"]) if row else (0.0, 0)
    due = _fetch_due(transaction, run, published_to, settled_to)
    published_to = due[-1][1].at if due else published_to
    stop = math.inf if settled_to == math.inf else math.floor(published_to + 0.5)
    increments = series_table.take_increments(transaction, run, stop)
    if (due or increments) and outbox_table.is_published(transaction, run):
        planned, head = fetch_planned_seconds(transaction, run), run_table.fetch_head(transaction, run)
        seen, unseen = assign(find_seconds([sample for _, sample in due]), increments)
        for number, (state, sample) in enumerate(due):
            counted = planned.add_to(_add(sample, seen.get(number, [])))
            line = build_tick_line(state, head, counted, planned.measure_progress(counted))
            outbox_table.put(transaction, run, LineKind.TICK, sample.at, [line])
        late = list(_build_late(transaction, run, chain.from_iterable(unseen.values()), late_lines, planned))
        outbox_table.enter(transaction, run, LineKind.TICK, late)
        late_lines += len(late)
    # Should a run be published later, its lines begin then: what it has now counts as published.
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


def _add(sample: Sample, rows: Sequence[SeriesRow]) -> Sample:
    outcomes = sample.outcomes
    for row in rows:
        outcomes = add_counts(outcomes, row.outcomes)
    sent = sample.requests_sent + sum(row.sent for row in rows)
    rates = build_rates(sample.seconds, outcomes)
    return msgspec.structs.replace(sample, requests_sent=sent, outcomes=outcomes, **rates)


def _build_late(
    transaction: Transaction, run: str, rows: Iterable[SeriesRow], before: int, planned: PlanByTime
) -> Iterator[tuple[int, Fields]]:
    """A line for each row, at its end; the number of the line is in its time, so no other line has it.

    `before` is how many such lines there were.
    """
    for number, row in enumerate(rows, before + 1):
        end = row.second + row.seconds
        sample = _find_sample(transaction, run, row.second)
        # The length of a second is in one line alone: that of its sample, or its first one.
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

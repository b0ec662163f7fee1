"""The history of a run: its seconds, its events, and the lines built from both."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from oku_coordinator.ledger.rules import tick_lines
from oku_coordinator.ledger.rules.tick_lines import fetch_planned_seconds
from oku_coordinator.ledger.storage.records import ThresholdRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import history_table, outbox_table, run_table, slice_table, threshold_table
from oku_coordinator.ledger.tables.accounts import work_table
from oku_core.accounting.run_state import ACTIVE_STATES
from oku_core.results.event import Event, EventType
from oku_core.results.lines import Fields, LineKind
from oku_core.results.sample import Sample
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.validity import Flag


@dataclass(frozen=True, kw_only=True)
class History:
    """The samples and events of a run, oldest first."""

    samples: list[Sample]
    events: list[Event]


_NO_PARTS: Mapping[LineKind, Iterable[Fields]] = MappingProxyType({})


def keep_second(
    transaction: Transaction, run: str, sample: Sample, state: str = "", settled_to: float = -math.inf
) -> None:
    """Store a second of a run, and put the lines of complete seconds into the outbox.

    Args:
        transaction: to write in.
        run: its id.
        sample: the second; its outcomes count in addition to the series.
        state: the state of the run.
        settled_to: samples that end by this time get their ticks now, with the counts of the series.
    """
    history_table.keep_sample(transaction, run, sample, state)
    tick_lines.put_settled(transaction, run, settled_to)
    history_table.thin_out(transaction, run)


def keep_events(transaction: Transaction, run: str, events: Iterable[Event]) -> None:
    """Store events of a run."""
    for event in events:
        history_table.record_event(transaction, run, event)


def put_coverage(transaction: Transaction, run: str, at: float, lines: Iterable[Fields]) -> None:
    """Put lines of coverage into the outbox, unless the run came to rest: it has final lines then."""
    if run_table.fetch_state(transaction, run) in ACTIVE_STATES:
        outbox_table.put(transaction, run, LineKind.COVERAGE, at, lines)


def put_summary(
    transaction: Transaction,
    run: str,
    fields: Fields,
    events: Iterable[Event],
    now: float,
    parts: Mapping[LineKind, Iterable[Fields]] = _NO_PARTS,
) -> bool:
    """Put the summary of a run at rest into the outbox with its parts, and its flags as events, once per
    rest.

    The ticks of its last seconds follow, if the coordinator that made them could not write them.

    Returns:
        Whether it was due: the run is published, and its summary was not there yet.
    """
    if not run_table.mark_summary_published(transaction, run):
        return False
    tick_lines.put_settled(transaction, run, math.inf)
    outbox_table.put(transaction, run, LineKind.SUMMARY, now, [fields])
    for kind, lines in parts.items():
        outbox_table.put(transaction, run, kind, now, lines)
    keep_events(transaction, run, events)
    return True


def record_clock_step(transaction: Transaction, run: str, step_s: float, now: float) -> None:
    """Record that the coordinator's clock was set while a run was active."""
    leased = slice_table.sum_lengths(transaction, run).leased
    work_table.add_flag(transaction, run, Flag.CLOCK_SET, leased, abs(step_s))
    how = f"{'forward' if step_s > 0 else 'back'} by {format_duration(abs(step_s))}"
    text = f"the coordinator's clock was set {how}"
    history_table.record_event(transaction, run, Event(at=now, type=EventType.CLOCK_SET, text=text))


def record_lost_threshold(transaction: Transaction, run: str, number: int, now: float, text: str) -> None:
    """Record, once, that a threshold is lost for certain, with the text as an event.

    Args:
        transaction: to write in.
        run: its id.
        number: the place of the threshold in its spec, from 0.
        now: Unix time.
        text: describes the threshold.
    """
    if threshold_table.insert_loss(transaction, run, number, now):
        history_table.record_event(transaction, run, Event(at=now, type=EventType.THRESHOLD_LOST, text=text))


def record_stretches(transaction: Transaction, run: str, kept: Mapping[int, ThresholdRecord]) -> None:
    """Store the state of thresholds over consecutive seconds, by their places in the spec.

    The times of their losses do not change.
    """
    for number, record in kept.items():
        threshold_table.write_stretch(transaction, run, number, record)


def fetch_history(transaction: Transaction, run: str) -> History:
    """The samples and events of a run at one instant."""
    samples = history_table.fetch_samples(transaction, run)
    if samples:
        planned = fetch_planned_seconds(transaction, run)
        samples = [planned.add_to(sample) for sample in samples]
    return History(samples=samples, events=history_table.fetch_events(transaction, run))

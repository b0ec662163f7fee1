"""Lease rows as types, with their encoding."""

import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from oku_coordinator.ledger.storage.records import breaching
from oku_core.accounting.index_ranges import IndexRanges, Range
from oku_core.accounting.lease_state import LeaseState, MessageVerdict
from oku_core.accounting.outcome import build_no_counts
from oku_core.json_reader import build_own_decoder
from oku_core.messaging.checkpoint import CheckpointBatch, LeaseFigures


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A lease in the ledger; its positions refer to its ranges.

    Attributes:
        id: its id.
        run: the id of its run.
        ranges: its ranges.
        worker: the name of its worker.
        incarnation: the process of that worker.
        state: its state.
        reason: why it has expired; empty otherwise.
        cut_at: when it was dealt.
        limit: the first position that the worker must not take; it never falls, and counts up to `end`.
        end: the first position that is not leased, or no longer is.
        done: the first position that was not taken, as committed.
        in_flight: the positions below `done` without an outcome, packed if there are any.
        untouched: the ones among these that were given back and never sent, also packed.
        reported_end: the end in its newest checkpoint; its worker may not have received a lower one.
        sequence: the number of its newest checkpoint; 0 without one.
        outcomes: the counts of outcomes of covered positions.
        figures: the figures of its newest checkpoint.
        wave: in an open run, the first coordinate of its wave; None in closed runs.
        lane: the lane of that wave.
    """

    id: str
    run: str
    ranges: IndexRanges
    worker: str
    incarnation: str
    state: LeaseState = LeaseState.ACTIVE
    reason: str = ""
    cut_at: float
    limit: int
    end: int
    done: int = 0
    in_flight: Sequence[int] = ()
    untouched: Sequence[int] = ()
    reported_end: int
    sequence: int = 0
    outcomes: list[int] = msgspec.field(default_factory=build_no_counts)
    figures: LeaseFigures = LeaseFigures()
    wave: int | None = None
    lane: int = 0

    @property
    def length(self) -> int:
        """The number of its requests when it was dealt."""
        return self.ranges.length

    @property
    def covered(self) -> int:
        """The number of its requests with an outcome."""
        return self.done - len(self.in_flight)

    @property
    def bound(self) -> int:
        """The first position that the worker must not take, with or without the newest limit."""
        return min(self.limit, self.end)

    @property
    def at_risk(self) -> int:
        """The number of requests that may have been sent without a committed outcome."""
        return self.sent_in_flight + self.bound - self.done

    @property
    def sent_in_flight(self) -> int:
        """The number of requests in flight that may have been sent: all but the untouched ones."""
        return len(self.in_flight) - len(self.untouched)

    def list_at_risk(self) -> list[Range]:
        """The ranges of the requests at risk, in-flight ones first."""
        untouched = set(self.untouched)
        sent = [position for position in self.in_flight if position not in untouched]
        in_flight = [(index, index + 1) for index in self.ranges.list_indices(sent)]
        return [*in_flight, *self.ranges.cut(self.done, self.bound)]

    @property
    def start(self) -> int:
        """Its first index."""
        return self.ranges.ranges[0][0]

    @property
    def stop(self) -> int:
        """The index behind its last one."""
        return self.ranges.ranges[-1][1]


class LeaseOrder(NamedTuple):
    """A lease to be dealt.

    Attributes:
        worker: the name of the worker.
        incarnation: its process.
        size: the intended number of requests; fewer if fewer are pending, or if these are scattered.
        allowance: how many requests its process may take of all leases dealt together.
    """

    worker: str
    incarnation: str
    size: int
    allowance: int


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The result of a batch of checkpoints, with the answer for its worker.

    Attributes:
        batch: the batch.
        verdicts: on each of its checkpoints.
        confirmed: for each lease, the highest sequence number that is dealt with.
        limits: the limits of open leases that this process may not have received.
        ends: the ends of its leases where its report differs.
    """

    batch: CheckpointBatch
    verdicts: list[MessageVerdict] = field(default_factory=list)
    confirmed: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


GROWING_COLUMNS = '"limit", "end", done, in_flight, untouched, reported_end, sequence, outcomes, figures'
"""The columns of `leases` that change while the lease is open."""
GROWING_MARKS = ", ".join("?" * (GROWING_COLUMNS.count(",") + 1))
_GROWING_NAMES = [name.strip('"') for name in GROWING_COLUMNS.split(", ")]
_decode_ranges = build_own_decoder(list[Range])
_decode_positions = build_own_decoder(list[int])
_decode_figures = build_own_decoder(LeaseFigures)
decode_counts = build_own_decoder(list[int])
"""Decodes a column of outcome counts."""


def pack_positions(positions: list[int]) -> Sequence[int]:
    """The positions in 8 bytes each: ten thousand workers may have a thousand in flight each."""
    return array("q", positions) if positions else ()


def encode_counts(counts: Sequence[int]) -> str:
    """Encode outcome counts, or positions, for a column."""
    return msgspec.json.encode(counts).decode()


def build_lease_record(row: sqlite3.Row | Mapping[str, Any]) -> LeaseRecord:
    """Build a lease from its row and its `ranges`, if it has several; `BreachError` if unreadable."""
    with breaching(row["run"]):
        ranges = _decode_ranges(row["ranges"]) if row["ranges"] else [(row["start"], row["stop"])]
        lease = LeaseRecord(
            id=row["id"], run=row["run"], ranges=IndexRanges(ranges), worker=row["worker"],
            incarnation=row["incarnation"], state=LeaseState(row["state"]), reason=row["reason"],
            cut_at=row["cut_at"], limit=row["limit"], end=row["end"], reported_end=row["reported_end"],
            wave=row["wave"], lane=row["lane"],
        )  # fmt: skip
        return decode_growth(lease, [row[name] for name in _GROWING_NAMES])


def decode_growth(lease: LeaseRecord, columns: Sequence[Any]) -> LeaseRecord:
    """The lease with other `GROWING_COLUMNS`; raises one of `UNREADABLE` if they are invalid."""
    limit, end, done, in_flight, untouched, reported_end, sequence, outcomes, figures = columns
    return msgspec.structs.replace(
        lease, limit=limit, end=end, done=done, in_flight=pack_positions(_decode_positions(in_flight)),
        untouched=pack_positions(_decode_positions(untouched)), reported_end=reported_end, sequence=sequence,
        outcomes=decode_counts(outcomes), figures=_decode_figures(figures),
    )  # fmt: skip


def encode_growth(lease: LeaseRecord) -> tuple[object, ...]:
    """The values of its `GROWING_COLUMNS`."""
    return (
        lease.limit, lease.end, lease.done, encode_counts(list(lease.in_flight)),
        encode_counts(list(lease.untouched)), lease.reported_end, lease.sequence,
        encode_counts(lease.outcomes), msgspec.json.encode(lease.figures).decode(),
    )  # fmt: skip

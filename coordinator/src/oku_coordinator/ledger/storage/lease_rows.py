"""How leases, and counts of outcomes, stand in the columns of the ledger."""

import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from oku_coordinator.ledger.storage.records import LeaseRecord, breaching
from oku_core.accounting.index_ranges import IndexRanges, Range
from oku_core.accounting.lease_state import LeaseState
from oku_core.json_reader import build_own_decoder
from oku_core.results.lease_figures import LeaseFigures

GROWING_COLUMNS = '"limit", "end", done, in_flight, sequence, outcomes, figures'
"""Of `leases`: what checkpoints and the coordinator change while the lease is open."""
_GROWING_NAMES = [name.strip('"') for name in GROWING_COLUMNS.split(", ")]
_decode_ranges = build_own_decoder(list[Range])
_decode_positions = build_own_decoder(list[int])
_decode_figures = build_own_decoder(LeaseFigures)
decode_counts = build_own_decoder(list[int])
"""Decodes counts of outcomes as they stand in columns."""


def pack_positions(positions: list[int]) -> Sequence[int]:
    """The same positions in 8 bytes each: ten thousand workers may have a thousand in flight each."""
    return array("q", positions) if positions else ()


def encode_counts(counts: Sequence[int]) -> str:
    """Encode counts of outcomes as they stand in columns."""
    return msgspec.json.encode(counts).decode()


def build_lease_record(row: sqlite3.Row | Mapping[str, Any]) -> LeaseRecord:
    """A row of `leases`, with its `ranges` if it has several; `BreachError` if it cannot be read."""
    with breaching(row["run"]):
        ranges = _decode_ranges(row["ranges"]) if row["ranges"] else [(row["start"], row["stop"])]
        lease = LeaseRecord(
            id=row["id"], run=row["run"], ranges=IndexRanges(ranges), worker=row["worker"],
            incarnation=row["incarnation"], state=LeaseState(row["state"]), reason=row["reason"],
            cut_at=row["cut_at"], limit=row["limit"], end=row["end"],
            wave=row["wave"], lane=row["lane"],
        )  # fmt: skip
        return decode_growth(lease, [row[name] for name in _GROWING_NAMES])


def decode_growth(lease: LeaseRecord, columns: Sequence[Any]) -> LeaseRecord:
    """A lease with other `GROWING_COLUMNS`; one of `UNREADABLE` if they cannot be read."""
    limit, end, done, in_flight, sequence, outcomes, figures = columns
    return msgspec.structs.replace(
        lease, limit=limit, end=end, done=done, in_flight=pack_positions(_decode_positions(in_flight)),
        sequence=sequence, outcomes=decode_counts(outcomes), figures=_decode_figures(figures),
    )  # fmt: skip


def encode_growth(lease: LeaseRecord) -> tuple[object, ...]:
    """The values of its `GROWING_COLUMNS`."""
    return (
        lease.limit, lease.end, lease.done, msgspec.json.encode(list(lease.in_flight)).decode(),
        lease.sequence, encode_counts(lease.outcomes), msgspec.json.encode(lease.figures).decode(),
    )  # fmt: skip

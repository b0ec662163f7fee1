"""The rows of failed requests: ranges of coordinates by name and outcome, a limited number per run."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.index_ranges import Range, iter_ranges, pack_ranges
from oku_core.accounting.outcome import Outcome
from oku_core.schedule.wave import Wave

MOST_RANGES = 200_000
"""The most ranges of a run; further requests are counted, but not listed."""
_pack = msgspec.msgpack.Encoder().encode
_unpack_ranges = msgspec.msgpack.Decoder(list[int]).decode
_unpack_wave = msgspec.msgpack.Decoder(Wave).decode


class FailedRanges(NamedTuple):
    """Requests that failed in the same way.

    Attributes:
        name: the name of the requests.
        outcome: their outcome.
        wave: in an open run, their wave; None also if they were never in one.
        ranges: their coordinates, in rising order.
    """

    name: str
    outcome: Outcome
    wave: Wave | None
    ranges: list[Range]


def add_failed(transaction: Transaction, run: str, failed: FailedRanges) -> None:
    """Store failed requests of a run, while there is room for more ranges."""
    row = transaction.select_one("SELECT ranges FROM failed_sizes WHERE run = ?", run)
    ranges = failed.ranges[: MOST_RANGES - (row["ranges"] if row else 0)]
    if not ranges:
        return
    transaction.execute(
        "INSERT INTO failed (run, name, outcome, start, wave, body) VALUES (?, ?, ?, ?, ?, ?)",
        run, failed.name, failed.outcome, ranges[0][0],
        None if failed.wave is None else _pack(failed.wave), _pack(pack_ranges(ranges)),
    )  # fmt: skip
    transaction.execute(
        "INSERT INTO failed_sizes (run, ranges) VALUES (?1, ?2)"
        " ON CONFLICT DO UPDATE SET ranges = ranges + ?2",
        run, len(ranges),
    )  # fmt: skip


def fetch_failed(transaction: Transaction, run: str) -> Iterator[FailedRanges]:
    """The failed requests of a run, by first coordinate; `BreachError` if a row is unreadable."""
    rows = transaction.select(
        "SELECT name, outcome, wave, body FROM failed WHERE run = ? ORDER BY start, id", run
    )
    with breaching(run):
        for row in rows:
            yield FailedRanges(
                row["name"],
                Outcome(row["outcome"]),
                _unpack_wave(row["wave"]) if row["wave"] else None,
                list(iter_ranges(_unpack_ranges(row["body"]))),
            )


def split_at_waves(
    ranges: Iterable[Range], waves: Iterable[Wave]
) -> Iterator[tuple[Wave | None, list[Range]]]:
    """Split ranges in rising order by wave; None for ranges in no wave."""
    rest = list(ranges)
    for wave in waves:
        before = [_clip(span, 0, wave.begin) for span in rest]
        within = [_clip(span, wave.begin, wave.stop) for span in rest]
        rest = [span for span in (_clip(span, wave.stop, span[1]) for span in rest) if span[0] < span[1]]
        for found, pieces in ((None, before), (wave, within)):
            if kept := [span for span in pieces if span[0] < span[1]]:
                yield found, kept
    if rest:
        yield None, rest


def _clip(span: Range, first: int, stop: int) -> Range:
    return max(span[0], first), min(span[1], stop)

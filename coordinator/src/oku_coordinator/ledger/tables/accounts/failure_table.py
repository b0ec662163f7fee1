"""The rows of failed requests: ranges of coordinates by name and outcome, a limited number per run.

A row has the reasons of its requests as runs (`oku_core.messaging.reason_runs`), of which a run has a
limited number, too. Rows beyond that, and rows of older ledgers, have none: their reason is `OTHER`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.index_ranges import Range, iter_ranges, pack_ranges
from oku_core.accounting.outcome import OTHER, Outcome
from oku_core.messaging.reason_runs import find_runs, split_ranges
from oku_core.schedule.wave import Wave

MOST_RANGES = 200_000
"""The most ranges of a run; further requests are counted, but not listed."""
MOST_REASON_RUNS = 200_000
"""The most runs of reasons of a run; the reasons of further requests are not kept."""
_pack = msgspec.msgpack.Encoder().encode
_unpack_ranges = msgspec.msgpack.Decoder(list[int]).decode
_unpack_reasons = msgspec.msgpack.Decoder(tuple[list[str], list[int]]).decode
_unpack_wave = msgspec.msgpack.Decoder(Wave).decode


class FailedRanges(NamedTuple):
    """Requests that failed with the same outcome.

    Attributes:
        name: the name of the requests.
        outcome: their outcome.
        wave: in an open run, their wave; None also if they were never in one.
        ranges: their coordinates, in rising order.
        by_reason: the same coordinates by the reasons of the requests.
    """

    name: str
    outcome: Outcome
    wave: Wave | None
    ranges: list[Range]
    by_reason: Mapping[str, list[Range]]

    @property
    def is_whole_wave(self) -> bool:
        """Whether these are all requests of their wave, and so all of its indices."""
        return self.wave is not None and self.ranges == [(self.wave.begin, self.wave.stop)]


def add_failed(transaction: Transaction, run: str, failed: FailedRanges) -> None:
    """Store failed requests of a run, while there is room for more ranges."""
    row = transaction.select_one("SELECT ranges, reason_runs FROM failed_sizes WHERE run = ?", run)
    has_ranges, has_runs = row or (0, 0)
    ranges = failed.ranges[: MOST_RANGES - has_ranges]
    if not ranges:
        return
    reasons = [reason for reason in failed.by_reason if reason != OTHER]
    runs = find_runs(ranges, {place: failed.by_reason[reason] for place, reason in enumerate(reasons, 1)})
    if has_runs + len(runs) > MOST_REASON_RUNS:
        reasons, runs = [], []
    transaction.execute(
        "INSERT INTO failed (run, name, outcome, start, wave, body, reasons) VALUES (?, ?, ?, ?, ?, ?, ?)",
        run, failed.name, failed.outcome, ranges[0][0],
        None if failed.wave is None else _pack(failed.wave), _pack(pack_ranges(ranges)),
        _pack((reasons, runs)) if reasons else None,
    )  # fmt: skip
    transaction.execute(
        "INSERT INTO failed_sizes (run, ranges, reason_runs) VALUES (?1, ?2, ?3)"
        " ON CONFLICT DO UPDATE SET ranges = ranges + ?2, reason_runs = reason_runs + ?3",
        run, len(ranges), len(runs),
    )  # fmt: skip


def fetch_failed(transaction: Transaction, run: str) -> Iterator[FailedRanges]:
    """The failed requests of a run, by first coordinate; `BreachError` if a row is unreadable."""
    rows = transaction.select(
        "SELECT name, outcome, wave, body, reasons FROM failed WHERE run = ? ORDER BY start, id", run
    )
    with breaching(run):
        for row in rows:
            ranges = list(iter_ranges(_unpack_ranges(row["body"])))
            reasons, runs = _unpack_reasons(row["reasons"]) if row["reasons"] else ([], [])
            texts = (OTHER, *reasons)
            yield FailedRanges(
                row["name"],
                Outcome(row["outcome"]),
                _unpack_wave(row["wave"]) if row["wave"] else None,
                ranges,
                {texts[place]: found for place, found in split_ranges(ranges, runs).items()},
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

"""The account of a run: what its reports sum to, folded in memory and kept with the run."""

import json
import sqlite3
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.outcome import build_no_counts, count_answered, is_account
from oku_core.messaging.lease import Report

_LOW_LIMIT = 2**62
"""An integer of SQLite has 64 bits, with a sign; the microseconds of 10**13 requests have more."""


@dataclass
class Account:
    """What the reports of a run sum to."""

    outcomes: list[int] = field(default_factory=build_no_counts)
    statuses: dict[str, int] = field(default_factory=dict)
    bytes_received: int = 0
    histogram: Histogram = field(default_factory=Histogram)

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    def add(self, report: Report) -> None:
        """Fold a report in."""
        for index, count in enumerate(report.outcomes):
            self.outcomes[index] += count
        for status, count in report.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.bytes_received += report.bytes_received
        self.histogram.add(report.latency)

    def copy(self) -> "Account":
        """One that later reports do not change."""
        histogram = copy(self.histogram)
        histogram.counts = list(histogram.counts)
        return Account(list(self.outcomes), dict(self.statuses), self.bytes_received, histogram)

    def check(self, lengths: Lengths) -> None:
        """The first law: outcomes sum to what is accounted, latencies and statuses to what was answered."""
        if self.accounted != lengths.accounted:
            raise ConservationError(f"outcomes sum to {self.accounted}, accounted are {lengths.accounted}")
        answered = count_answered(self.outcomes)
        if not self.histogram.total == answered == sum(self.statuses.values()):
            statuses = sum(self.statuses.values())
            raise ConservationError(
                f"{answered} are answered, there are {self.histogram.total} latencies and {statuses} statuses"
            )


def build_account(row: sqlite3.Row) -> Account:
    """The account of a run as its row has it; `ValueError` when it cannot be read."""
    histogram = Histogram()
    if row["histogram"]:
        latency = hdr.decode(row["histogram"])
        histogram.add(
            HistogramSnapshot(
                buckets=latency.buckets,
                sum_us=_join(row["sum_us_high"], row["sum_us"]),
                min_us=row["min_us"],
                max_us=row["max_us"],
            )
        )
    outcomes = json.loads(row["outcomes"])
    if not is_account(outcomes):
        raise ValueError("the outcomes are no six counts")
    return Account(
        outcomes=outcomes,
        statuses=json.loads(row["statuses"]),
        bytes_received=_join(row["bytes_received_high"], row["bytes_received"]),
        histogram=histogram,
    )


def build_account_columns(account: Account) -> Sequence[object]:
    """The columns outcomes, statuses, bytes_received and sum_us, high and low, min_us, max_us, histogram."""
    histogram = account.histogram
    return (
        json.dumps(account.outcomes),
        json.dumps(account.statuses, sort_keys=True),
        *divmod(account.bytes_received, _LOW_LIMIT),
        *divmod(histogram.sum_us, _LOW_LIMIT),
        histogram.min_us,
        histogram.max_us,
        hdr.encode(histogram),
    )


def _join(high: int, low: int) -> int:
    return high * _LOW_LIMIT + low

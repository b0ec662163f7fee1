"""How accounts stand in the columns of the ledger."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from oku_core.accounting import hdr
from oku_core.accounting.account import Account
from oku_core.accounting.failure_reason import ReasonCount
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_SENT_CAUSES, is_account
from oku_core.json_reader import build_own_decoder

_LOW_LIMIT = 2**62
"""An integer of SQLite has 64 bits, with a sign; the microseconds of 10**13 requests have more."""
ACCOUNT_COLUMNS = (
    "outcomes", "not_sent", "reasons", "statuses", "bytes_received_high", "bytes_received",
    *(
        f"{name}{column}"
        for name in Time
        for column in ("_sum_us_high", "_sum_us", "_min_us", "_max_us", "")
    ),
)  # fmt: skip
"""Of `accounts`: what an account is kept in."""
_decode = build_own_decoder(Any)
decode_reasons = build_own_decoder(list[ReasonCount])
"""Decodes the reasons of an account as they stand in its column."""


def build_account(row: sqlite3.Row | Mapping[str, Any]) -> Account:
    """Decode the account in a row of `accounts`; `ValueError` if it cannot be read."""
    outcomes, not_sent = _decode(row["outcomes"]), _decode(row["not_sent"])
    if not is_account(outcomes):
        raise ValueError("the outcomes are not the counts of each")
    if len(not_sent) != len(NOT_SENT_CAUSES):
        raise ValueError("the causes for not sending are not the counts of each")
    return Account(
        outcomes=outcomes,
        not_sent=not_sent,
        reasons={count.key: count for count in decode_reasons(row["reasons"])},
        statuses=_decode(row["statuses"]),
        bytes_received=_join(row["bytes_received_high"], row["bytes_received"]),
        times={time: _build_histogram(row, time) for time in Time if row[time]},
    )


def _build_histogram(row: sqlite3.Row | Mapping[str, Any], name: str) -> Histogram:
    histogram = Histogram()
    snapshot = HistogramSnapshot(
        buckets=hdr.decode(row[name]).buckets,
        sum_us=_join(row[f"{name}_sum_us_high"], row[f"{name}_sum_us"]),
        min_us=row[f"{name}_min_us"],
        max_us=row[f"{name}_max_us"],
    )
    histogram.add(snapshot)
    return histogram


def build_account_columns(account: Account) -> Sequence[object]:
    """Encode an account as the values of its columns."""
    return (
        json.dumps(account.outcomes),
        json.dumps(account.not_sent),
        msgspec.json.encode(list(account.reasons.values())).decode(),
        json.dumps(account.statuses, sort_keys=True),
        *divmod(account.bytes_received, _LOW_LIMIT),
        *(value for time in Time for value in _list_values(account.histogram(time))),
    )


def _list_values(histogram: Histogram) -> Iterator[object]:
    yield from divmod(histogram.sum_us, _LOW_LIMIT)
    yield from (histogram.min_us, histogram.max_us)
    yield hdr.encode(histogram) if histogram.total else None


def _join(high: int, low: int) -> int:
    return high * _LOW_LIMIT + low

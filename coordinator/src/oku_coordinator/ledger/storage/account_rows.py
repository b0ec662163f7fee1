"""How accounts stand in the ledger: a row for each, and one for each time that was measured."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_SENT_CAUSES, ReasonCount, is_account
from oku_core.json_reader import build_own_decoder

_LOW_LIMIT = 2**62
"""An integer of SQLite has 64 bits, with a sign; the microseconds of 10**13 requests have more."""
ACCOUNT_COLUMNS = ("outcomes", "not_sent", "reasons", "statuses", "bytes_received_high", "bytes_received")
"""Of `accounts`: what an account is kept in, but for its times."""
TIME_COLUMNS = ("sum_us_high", "sum_us", "min_us", "max_us", "histogram")
"""Of `account_times`: what a time is kept in."""
_decode = build_own_decoder(Any)
decode_reasons = build_own_decoder(list[ReasonCount])
"""Decodes the reasons of an account as they stand in its column."""

_Row = sqlite3.Row | Mapping[str, Any]


def build_account(row: _Row) -> Account:
    """Decode the account in a row of `accounts`, without its times; `ValueError` if it cannot be read."""
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
    )


def build_time(row: _Row) -> tuple[Time, Histogram]:
    """Decode the time in a row of `account_times`; `ValueError` if it cannot be read."""
    histogram = Histogram.unpack(
        row["histogram"],
        sum_us=_join(row["sum_us_high"], row["sum_us"]),
        min_us=row["min_us"],
        max_us=row["max_us"],
    )
    return Time(row["time"]), histogram


def build_account_columns(account: Account) -> Sequence[object]:
    """Encode an account as the values of its columns."""
    return (
        json.dumps(account.outcomes),
        json.dumps(account.not_sent),
        msgspec.json.encode(list(account.reasons.values())).decode(),
        json.dumps(account.statuses, sort_keys=True),
        *divmod(account.bytes_received, _LOW_LIMIT),
    )


def build_time_columns(histogram: Histogram) -> Sequence[object]:
    """Encode a time as the values of its columns."""
    sums_us = divmod(histogram.sum_us, _LOW_LIMIT)
    return (*sums_us, histogram.min_us, histogram.max_us, histogram.pack())


def _join(high: int, low: int) -> int:
    return high * _LOW_LIMIT + low

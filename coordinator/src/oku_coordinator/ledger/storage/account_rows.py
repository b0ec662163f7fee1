"""How an account stands in its row of the ledger."""

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
ACCOUNT_COLUMNS = (
    "outcomes", "not_sent", "reasons", "statuses", "bytes_received_high", "bytes_received", "times"
)  # fmt: skip
"""Of `accounts`: what an account is kept in."""
_decode = build_own_decoder(Any)
decode_reasons = build_own_decoder(list[ReasonCount])
"""Decodes the reasons of an account as they stand in its column."""


class _StoredTime(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A time that was measured; a run of many parts has tens of thousands."""

    time: Time
    sum_us_high: int
    sum_us: int
    min_us: int
    max_us: int
    packed: bytes


_pack_times = msgspec.msgpack.Encoder().encode
_unpack_times = msgspec.msgpack.Decoder(list[_StoredTime]).decode


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
        times=decode_times(row["times"]),
    )


def decode_times(times: bytes) -> dict[Time, Histogram]:
    """Decode the times of an account as they stand in their column; `ValueError` if they cannot be read."""
    return {
        stored.time: Histogram.unpack(
            stored.packed,
            sum_us=_join(stored.sum_us_high, stored.sum_us),
            min_us=stored.min_us,
            max_us=stored.max_us,
        )
        for stored in _unpack_times(times)
    }


def build_account_columns(account: Account) -> Sequence[object]:
    """Encode an account as the values of its columns."""
    return (
        json.dumps(account.outcomes),
        json.dumps(account.not_sent),
        msgspec.json.encode(list(account.reasons.values())).decode(),
        json.dumps(account.statuses, sort_keys=True),
        *divmod(account.bytes_received, _LOW_LIMIT),
        _pack_times([_store_time(time, held) for time, held in account.times.items() if held.total]),
    )


def _store_time(time: Time, held: Histogram) -> _StoredTime:
    return _StoredTime(time, *divmod(held.sum_us, _LOW_LIMIT), held.min_us, held.max_us, held.pack())


def _join(high: int, low: int) -> int:
    return high * _LOW_LIMIT + low

"""The rows of inner requests: those that user code makes within iterations, beside the account.

They sum to nothing: what an iteration sends again, it counts again.
"""

from collections.abc import Iterable, Mapping

import msgspec

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.run_account import PartAccounts, PartName
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.account import Account
from oku_core.accounting.counts import Counts
from oku_core.messaging.checkpoint import OTHER_NAMES, Part

MOST_NAMES = 256
"""How many names of inner requests a run tells apart; the rest counts under `OTHER_NAMES`."""
MOST_TRACEBACKS = 64
"""How many tracebacks are kept of a run."""
MOST_BYTES = 1 << 53
"""How many bytes are counted of a phase and name: user code says what it likes, and no figure may outgrow
the integers of messages and JSON."""
_pack = msgspec.msgpack.Encoder().encode
_unpack_counts = msgspec.msgpack.Decoder(Counts).decode
_unpack_part = msgspec.msgpack.Decoder(Part).decode


def fetch_inner(transaction: Transaction, run: str) -> PartAccounts:
    """What the inner requests of a run sum to, by phase and name; `BreachError` if it cannot be read."""
    rows = transaction.select("SELECT phase, name, body FROM inner_accounts WHERE run = ? ORDER BY name", run)
    accounts: dict[PartName, Account] = {}
    with breaching(run):
        for row in rows:
            account = accounts[row["phase"], row["name"]] = Account()
            account.add(_unpack_counts(row["body"]))
    return PartAccounts(accounts)


def write_inner(transaction: Transaction, run: str, name: PartName, account: Account) -> None:
    """Write what the inner requests of a phase and name sum to."""
    transaction.execute(
        "INSERT INTO inner_accounts (run, phase, name, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        run, *name, _pack(account.build_counts()),
    )  # fmt: skip


def fold_inner(account: Account, gained: Counts) -> None:
    """Fold what inner requests have gained into those of their phase and name."""
    account.add(gained)
    account.bytes_received = min(account.bytes_received, MOST_BYTES)


def choose_name(known: PartAccounts, name: PartName) -> PartName:
    """What inner requests are counted under: their own name, unless the run has too many."""
    if name[1] in known.names or len(known.names) < MOST_NAMES:
        return name
    return name[0], OTHER_NAMES


def fetch_inner_parts(transaction: Transaction, lease: LeaseRecord) -> dict[PartName, Part]:
    """The inner parts of an open lease as its newest checkpoint left them."""
    rows = transaction.select("SELECT phase, name, body FROM inner_parts WHERE lease = ?", lease.id)
    with breaching(lease.run):
        return {(row["phase"], row["name"]): _unpack_part(row["body"]) for row in rows}


def write_inner_parts(transaction: Transaction, lease: LeaseRecord, parts: Iterable[Part]) -> None:
    """Put the newest inner parts of an open lease in the place of those before."""
    transaction.execute_each(
        "INSERT INTO inner_parts (lease, phase, name, run, body) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        [(lease.id, part.phase, part.name, lease.run, _pack(part)) for part in parts],
    )


def drop_inner_parts(transaction: Transaction, lease: str) -> None:
    """A lease is not open any more; its inner parts go."""
    transaction.execute("DELETE FROM inner_parts WHERE lease = ?", lease)


def add_tracebacks(transaction: Transaction, run: str, tracebacks: Mapping[str, str]) -> None:
    """Keep the first traceback for each reason, as far as there is room."""
    kept = transaction.select("SELECT count(*) AS kept FROM tracebacks WHERE run = ?", run)[0]["kept"]
    for reason, body in list(tracebacks.items())[: MOST_TRACEBACKS - kept]:
        transaction.execute(
            "INSERT INTO tracebacks (run, reason, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            run, reason, body,
        )  # fmt: skip


def fetch_tracebacks(transaction: Transaction, run: str) -> dict[str, str]:
    """The tracebacks of a run by the reasons of the exceptions."""
    rows = transaction.select("SELECT reason, body FROM tracebacks WHERE run = ?", run)
    return {row["reason"]: row["body"] for row in rows}

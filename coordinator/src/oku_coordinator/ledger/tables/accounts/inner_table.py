"""The rows of inner requests, which user code makes within iterations.

They are not conserved: a repeated iteration counts its requests again.
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
"""The most names of inner requests per run; the rest counts under `OTHER_NAMES`."""
MOST_TRACEBACKS = 64
"""The most tracebacks per run."""
MOST_BYTES = 1 << 53
"""The most bytes counted per phase and name: user code is untrusted, and sums must fit into JSON."""
_pack = msgspec.msgpack.Encoder().encode
_unpack_counts = msgspec.msgpack.Decoder(Counts).decode
_unpack_part = msgspec.msgpack.Decoder(Part).decode


def fetch_inner(transaction: Transaction, run: str) -> PartAccounts:
    """The account of inner requests, by phase and name; `BreachError` if it is unreadable."""
    rows = transaction.select("SELECT phase, name, body FROM inner_accounts WHERE run = ? ORDER BY name", run)
    accounts: dict[PartName, Account] = {}
    with breaching(run):
        for row in rows:
            account = accounts[row["phase"], row["name"]] = Account()
            account.add(_unpack_counts(row["body"]))
    return PartAccounts(accounts)


def write_inner(transaction: Transaction, run: str, name: PartName, account: Account) -> None:
    """Write the account of inner requests of a phase and name."""
    transaction.execute(
        "INSERT INTO inner_accounts (run, phase, name, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        run, *name, _pack(account.build_counts()),
    )  # fmt: skip


def fold_inner(account: Account, gained: Counts) -> None:
    """Fold the growth of inner requests into the account of their phase and name."""
    account.add(gained)
    account.bytes_received = min(account.bytes_received, MOST_BYTES)


def choose_name(known: PartAccounts, name: PartName) -> PartName:
    """The name that inner requests count under: their own, unless the run has too many."""
    if name[1] in known.names or len(known.names) < MOST_NAMES:
        return name
    return name[0], OTHER_NAMES


def fetch_inner_parts(transaction: Transaction, lease: LeaseRecord) -> dict[PartName, Part]:
    """The inner parts of an open lease as of its newest checkpoint."""
    rows = transaction.select("SELECT phase, name, body FROM inner_parts WHERE lease = ?", lease.id)
    with breaching(lease.run):
        return {(row["phase"], row["name"]): _unpack_part(row["body"]) for row in rows}


def write_inner_parts(transaction: Transaction, lease: LeaseRecord, parts: Iterable[Part]) -> None:
    """Replace the inner parts of an open lease by the newest ones."""
    transaction.execute_each(
        "INSERT INTO inner_parts (lease, phase, name, run, body) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        [(lease.id, part.phase, part.name, lease.run, _pack(part)) for part in parts],
    )


def drop_inner_parts(transaction: Transaction, lease: str) -> None:
    """Delete the inner parts of a lease that is no longer open."""
    transaction.execute("DELETE FROM inner_parts WHERE lease = ?", lease)


def add_tracebacks(transaction: Transaction, run: str, tracebacks: Mapping[str, str]) -> None:
    """Store the first traceback for each reason, while there is room."""
    kept = transaction.select("SELECT count(*) AS kept FROM tracebacks WHERE run = ?", run)[0]["kept"]
    for reason, body in list(tracebacks.items())[: MOST_TRACEBACKS - kept]:
        transaction.execute(
            "INSERT INTO tracebacks (run, reason, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            run, reason, body,
        )  # fmt: skip


def fetch_tracebacks(transaction: Transaction, run: str) -> dict[str, str]:
    """The tracebacks of a run by reason."""
    rows = transaction.select("SELECT reason, body FROM tracebacks WHERE run = ?", run)
    return {row["reason"]: row["body"] for row in rows}

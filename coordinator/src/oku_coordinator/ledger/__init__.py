"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

`Ledger` opens transactions. `tables` read and write rows; `rules` maintain the account: `intake` handles
checkpoints, `growth` computes their growth, `closing` ends leases, `expiring` ends the leases of dead
workers, `lifecycle` changes states, and `conservation` checks every change. `batches` splits work that is too
long for one transaction.
"""

from oku_coordinator.ledger.ledger import Ledger
from oku_coordinator.ledger.storage.records import UnknownRunError

__all__ = ["Ledger", "UnknownRunError"]

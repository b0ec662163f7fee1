"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

`Ledger` opens transactions. `tables` read and write rows in them; `rules` keep the account: `intake` handles
checkpoints, `growth` computes their gain, `closing` ends leases, `expiring` those of the dead, `lifecycle`
changes states, and `conservation` checks every change. `batches` splits what is too long for one transaction.
"""

from oku_coordinator.ledger.ledger import Ledger
from oku_coordinator.ledger.storage.records import UnknownRunError

__all__ = ["Ledger", "UnknownRunError"]

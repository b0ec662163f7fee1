"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

`Ledger` is the door, and the `ledger_*` modules are its rooms. Behind them, `transaction` owns the file,
`conservation` checks every change, `intake` takes in checkpoints, `growth` says what they have gained,
`closing` ends leases, `reclaim` takes them back, `lifecycle` changes states, and the `*_table` modules read
and write rows.
"""

from oku_coordinator.ledger.ledger import Ledger
from oku_coordinator.ledger.storage.records import UnknownRunError

__all__ = ["Ledger", "UnknownRunError"]

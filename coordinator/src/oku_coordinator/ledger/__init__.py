"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

`Ledger` is the door; behind it `transaction` has the file, `conservation` the check at the end of each
change, `intake` claims and reports, `recall` what is taken back, `course` the states, the tables their rows.
"""

from oku_coordinator.ledger.ledger import Ledger
from oku_coordinator.ledger.records import UnknownRunError

__all__ = ["Ledger", "UnknownRunError"]

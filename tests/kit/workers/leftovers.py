"""What is left in memory of finished work while the garbage collector is off."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease
from oku_workers.executions.open_part import OpenPart
from oku_workers.executions.tally import Tally

_OF_LEASES = (Execution, Tally, OpenLease, OpenPart)


@contextmanager
def without_collector() -> Iterator[Callable[[], list[str]]]:
    """Have objects freed by counting references alone; gives what names those of leases that live."""
    gc.freeze()  # what was there before is not looked at
    gc.disable()

    def list_alive() -> list[str]:
        return sorted(type(each).__name__ for each in gc.get_objects() if isinstance(each, _OF_LEASES))

    try:
        yield list_alive
    finally:
        gc.enable()
        gc.unfreeze()

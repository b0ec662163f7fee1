"""Tests with trial writes whether an idle ledger can be written, and logs changes.

A coordinator without a run writes nothing, so it would not notice a full disk, or free space again.
"""

import asyncio
import contextlib
import logging
import time

from oku_coordinator.event_loop import BackgroundService
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.storage_health import StorageError
from oku_core.process.clock import Clock
from oku_core.process.supervision import Health

_log = logging.getLogger(__name__)

_POLL_S = 1.0
IDLE_S = 5.0
"""A file not written for this long is tested; a faulty one is tested each second."""


class StorageWatch(BackgroundService):
    """Checks the health of the ledger's file each second."""

    service_name = "ledger"

    def __init__(self, ledger: Ledger, clock: Clock = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._logged = ""

    def check(self) -> None:
        """Test the file if it is time, and log a change of its health."""
        storage = self._ledger.storage
        if storage.trouble or self._clock() - storage.written_at >= IDLE_S:
            with contextlib.suppress(StorageError):  # its health has recorded it
                self._ledger.try_writing()
        if storage.trouble != self._logged:
            self._logged = storage.trouble
            if self._logged:
                _log.error("the ledger cannot be used: %s", self._logged)
            else:
                _log.info("the ledger can be used again")

    async def _work(self, health: Health) -> None:
        while True:
            self.check()
            health.record_success()
            await asyncio.sleep(_POLL_S)

"""The coordinator as a process: startup, main loop, shutdown.

`assembly` wires its parts: background services, servers, the inbound side, the main loop and the ticker.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import sys

from oku_coordinator.assembly import Assembly
from oku_coordinator.foundation import REAL, Platform
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.storage_health import StorageError
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import account_table
from oku_coordinator.settings import CoordinatorSettings
from oku_core.process.supervision import cancel_tasks

_log = logging.getLogger(__name__)

_SWITCH_S = 0.0002
_GC_THRESHOLDS = (700, 10, 10)
"""The defaults of Python 3.11."""
_LONGEST_PAUSE_S = 1.0
"""The pause between attempts of the main loop and the ticker, until the ledger is usable."""
_LAST_ANSWERS_S = 1.0
"""How long to wait at the end for the broker to accept the last messages to workers."""


class Coordinator:
    """One coordinator; `run` returns after `end`."""

    def __init__(self, settings: CoordinatorSettings, platform: Platform = REAL) -> None:
        self._parts = Assembly(settings, platform)
        self._base = self._parts.base

    async def run(self) -> None:
        """Startup, main loop, shutdown."""
        supervisor = self._base.supervisor
        await self._startup()
        await self._base.settle_clock()
        ticking = supervisor.start("ticks", self._parts.ticker.run, _LONGEST_PAUSE_S)
        working = supervisor.start("dispatcher", self._parts.main_loop.run, _LONGEST_PAUSE_S)
        try:
            await supervisor.wait(working)
        finally:
            await cancel_tasks([ticking, working])
            await self._shutdown()

    def end(self) -> None:
        """Let `run` return soon; call it in its event loop."""
        self._base.signals.end()

    async def _startup(self) -> None:
        parts, loop = self._parts, asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)
        await asyncio.to_thread(_load_account, self._base.ledger)
        for service in parts.services:
            service.start(self._base.supervisor)
        self._base.inbound.start(parts.receiver, parts.message_handler)
        await parts.servers.start()

    async def _shutdown(self) -> None:
        self._base.inbound.end()
        await self._parts.servers.stop()
        await self._base.inbound.wait()
        await asyncio.to_thread(self._base.broker.end, _LAST_ANSWERS_S)
        for service in self._parts.services:
            await service.end()
        self._base.close()


def _load_account(ledger: Ledger) -> None:
    """Load the account of the active run, so that the event loop does not wait for it."""
    # A fault is found again and reported when the account is needed.
    with contextlib.suppress(BreachError, StorageError), ledger.read() as t:
        run = run_table.fetch_current_run(t)
        if run is not None and run.is_active:
            account_table.load_account(t, run.run)


def serve_runs(settings: CoordinatorSettings) -> None:
    """Run a coordinator until SIGTERM or SIGINT."""
    # Threads that poll the broker release the interpreter at each call. With the default of 5 ms, each call
    # would wait that long for the thread that is decoding.
    sys.setswitchinterval(_SWITCH_S)

    async def run() -> None:
        await Coordinator(settings).run()

    # Imported modules stay. Garbage of API calls is collected often, so that callers cannot fill the memory;
    # the command has set other thresholds for its imports.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    asyncio.run(run())

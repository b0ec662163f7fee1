"""The coordinator as a process: startup, main loop, shutdown.

`assembly` builds its parts, and `main_loop` does the work. Ticks are made beside it, by `telemetry.ticker`.
"""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable

from oku_coordinator.api.authentication import close_metrics
from oku_coordinator.api.file_downloads import DOWNLOAD_LIMITS, build_download_api
from oku_coordinator.api.file_uploads import build_upload_routes
from oku_coordinator.api.routes import build_api
from oku_coordinator.api.run_files import build_run_file_routes
from oku_coordinator.api.server import ApiServer
from oku_coordinator.assembly import Assembly
from oku_coordinator.settings import CoordinatorSettings
from oku_core.process.listener import adopt_sockets, format_address, open_sockets
from oku_core.process.private_files import write_ready_file
from oku_core.process.supervision import Supervisor, cancel

_log = logging.getLogger(__name__)

_SWITCH_S = 0.0002
_GC_THRESHOLDS = (700, 10, 10)
"""Those that Python 3.11 begins with."""
_LONGEST_PAUSE_S = 1.0
"""Between two attempts of the tasks that keep a run going: it goes on as soon as the ledger can be used."""
_LAST_ANSWERS_S = 1.0
"""How long the broker is given at the end to take what waits to be sent to workers."""
_LAST_LINES_S = 2.0
"""How long Loki is given at the end to take the lines that wait for it."""


class Coordinator:
    """One coordinator; `run` returns when it was told to end.

    Args:
        settings: what it was told.
        build_supervisor: of its tasks, out of what is fatal and how to pause; a test may let them fail.
    """

    def __init__(
        self, settings: CoordinatorSettings, build_supervisor: Callable[..., Supervisor] = Supervisor
    ) -> None:
        self._settings = settings
        self._parts = Assembly(settings, build_supervisor)

    async def run(self) -> None:
        """Startup, main loop, shutdown."""
        await self._startup()
        await self._parts.settle_clock()
        supervisor = self._parts.supervisor
        ticking = supervisor.start("ticks", self._parts.ticker.run, _LONGEST_PAUSE_S)
        working = supervisor.start("dispatcher", self._parts.main_loop.run, _LONGEST_PAUSE_S)
        try:
            await supervisor.wait(working)
        finally:
            await cancel([ticking, working])
            await self._shutdown()

    def end(self) -> None:
        """Let `run` return soon; to be called in its event loop."""
        self._parts.signals.end()

    async def _startup(self) -> None:
        parts = self._parts
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)
        if parts.server_watch is not None:
            parts.server_watch.start(parts.supervisor)
        parts.inbound.start()
        if parts.kube is not None:
            parts.kube.start(parts.supervisor)
        if parts.publisher is not None:
            parts.publisher.start(parts.supervisor)
            parts.coverage.start(parts.supervisor)
        parts.retention.start(parts.supervisor)
        parts.storage_watch.start(parts.supervisor)
        await self._open_files()
        await self._open_api()
        if parts.clock_service is not None:
            parts.clock_service.start()

    async def _open_files(self) -> None:
        """Let workers fetch the files of runs, before one gets a lease that needs them."""
        parts, settings = self._parts, self._settings
        if settings.files_listen_fd is not None:
            [listening] = adopt_sockets([settings.files_listen_fd])
        else:
            [listening] = open_sockets(settings.host, settings.files_port, 1, flag="--files-port")
        parts.announce_files(settings, listening)
        downloads = build_download_api(
            parts.file_store, parts.signer, parts.clock.now, parts.metrics.count_refusal
        )
        self._file_server = ApiServer(downloads, DOWNLOAD_LIMITS)
        await self._file_server.start(listening)

    async def _open_api(self) -> None:
        parts, settings = self._parts, self._settings
        scaling = parts.kube.describe if parts.kube is not None else lambda: None
        api = build_api(
            parts.runs, parts.metrics, settings.token, parts.find_obstacle, parts.publisher, scaling
        )
        if settings.closes_metrics:
            close_metrics(api, settings.token)
        api.add_routes(build_upload_routes(parts.file_store))
        api.add_routes(build_run_file_routes(parts.ledger, parts.file_store))
        self._api_server = ApiServer(api)
        [listening] = self._open_sockets()
        parts.open_clock(settings, listening)
        await self._api_server.start(listening)
        address = format_address(listening)
        _log.info("listening on http://%s", address)
        if settings.ready_file:
            write_ready_file(settings.ready_file, address)

    def _open_sockets(self) -> list[socket.socket]:
        if self._settings.listen_fd is not None:
            return adopt_sockets([self._settings.listen_fd])
        return open_sockets(self._settings.host, self._settings.port, 1)

    async def _shutdown(self) -> None:
        parts = self._parts
        parts.inbound.end()
        if parts.clock_service is not None:
            parts.clock_service.end()
        await self._api_server.stop()
        await self._file_server.stop()
        await parts.inbound.wait()
        await asyncio.to_thread(parts.broker.end, _LAST_ANSWERS_S)
        if parts.server_watch is not None:
            await parts.server_watch.end()
        if parts.kube is not None:
            await parts.kube.end()
        await parts.coverage.end()
        await parts.retention.end()
        await parts.storage_watch.end()
        if parts.publisher is not None:
            await parts.publisher.end(_LAST_LINES_S)
        parts.close()


def serve(settings: CoordinatorSettings) -> None:
    """Run a coordinator until SIGTERM or SIGINT."""
    # Threads that ask the broker release the interpreter at each call; with the default of 5 ms they would
    # wait that long at each for the one that is decoding.
    sys.setswitchinterval(_SWITCH_S)

    async def run() -> None:
        await Coordinator(settings).run()

    # What was imported stays. What callers of the API leave behind is looked for often, or they could take
    # much memory: the command has set other thresholds for its imports.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    asyncio.run(run())

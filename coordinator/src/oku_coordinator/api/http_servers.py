"""The ports of a coordinator: the API, the files for workers, and the clock beside the API."""

import logging
import socket

from oku_coordinator.api.api_server import ApiServer
from oku_coordinator.api.authentication import close_metrics
from oku_coordinator.api.file_routes import (
    DOWNLOAD_LIMITS,
    build_download_api,
    build_run_file_routes,
    build_upload_routes,
)
from oku_coordinator.api.routes import Scaling, build_api
from oku_coordinator.clock.clock_service import ClockService, open_clock
from oku_coordinator.files.file_access import FileAccess, find_files_address
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.foundation import Foundation
from oku_coordinator.runs.runs import Runs
from oku_coordinator.settings import CoordinatorSettings
from oku_core.messaging.signing import RejectionLog
from oku_core.process.listener import adopt_sockets, format_address, open_sockets
from oku_core.process.private_files import write_ready_file

_log = logging.getLogger(__name__)


class HttpServers:
    """Opens and closes the ports."""

    def __init__(
        self,
        settings: CoordinatorSettings,
        foundation: Foundation,
        runs: Runs,
        scaling: Scaling | None,
        file_store: FileStore,
        file_access: FileAccess,
    ) -> None:
        self._settings = settings
        self._foundation = foundation
        self._runs = runs
        self._scaling = scaling
        self._file_store = file_store
        self._file_access = file_access
        self._api: ApiServer
        self._files: ApiServer
        self._clock: ClockService | None = None

    async def start(self) -> None:
        """Open the ports: workers can fetch files before they get a lease that needs them."""
        await self._open_files()
        await self._open_api()

    async def stop(self) -> None:
        """Close the ports and end the open connections."""
        if self._clock is not None:
            self._clock.end()
        await self._api.stop()
        await self._files.stop()

    async def _open_files(self) -> None:
        settings = self._settings
        if settings.files_listen_fd is not None:
            [listening] = adopt_sockets([settings.files_listen_fd])
        else:
            [listening] = open_sockets(settings.host, settings.files_port, 1, flag="--files-port")
        self._file_access.address = find_files_address(
            listening.getsockname()[:2],
            socket.gethostname(),
            settings.files_host or settings.clock_host,
            settings.files_address_port,
        )
        base = self._foundation
        self._files = ApiServer(
            build_download_api(self._file_store, base.signer, base.clock.now, base.telemetry.metrics),
            DOWNLOAD_LIMITS,
        )
        await self._files.start(listening)

    async def _open_api(self) -> None:
        settings, base = self._settings, self._foundation
        metrics, publisher = base.telemetry.metrics, base.telemetry.publisher
        api = build_api(self._runs, metrics, settings.token, base.troubles, publisher, self._scaling)
        if settings.closes_metrics:
            close_metrics(api, settings.token)
        api.add_routes(build_upload_routes(self._file_store))
        api.add_routes(build_run_file_routes(base.ledger, self._file_store))
        self._api = ApiServer(api)
        if settings.listen_fd is not None:
            [listening] = adopt_sockets([settings.listen_fd])
        else:
            [listening] = open_sockets(settings.host, settings.port, 1)
        rejections = RejectionLog(_log, metrics.count_rejected, what="clock requests")
        health = base.supervisor.enlist("clock")
        self._clock = open_clock(settings, listening, base.clock_store, base.signer, health, rejections)
        await self._api.start(listening)
        address = format_address(listening)
        _log.info("listening on http://%s", address)
        if settings.ready_file:
            write_ready_file(settings.ready_file, address)
        if self._clock is not None:
            self._clock.start()

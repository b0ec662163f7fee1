"""The ports of a coordinator: the API, the files for workers, and the clock beside the API."""

import logging
import socket
from dataclasses import dataclass, field

from oku_coordinator.api.api_server import ApiServer
from oku_coordinator.api.authentication import close_metrics
from oku_coordinator.api.file_downloads import DOWNLOAD_LIMITS, build_download_api
from oku_coordinator.api.file_routes import build_run_file_routes, build_upload_routes
from oku_coordinator.api.routes import Scaling, build_api
from oku_coordinator.clock.clock_service import ClockService, open_clock
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.files.file_access import FileAccess, find_files_address
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.runs import Runs
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.telemetry.publisher import Publisher
from oku_core.messaging.signing import RejectionLog, Signer
from oku_core.process.clock import Clock
from oku_core.process.listener import adopt_sockets, format_address, open_sockets
from oku_core.process.private_files import write_ready_file
from oku_core.process.supervision import Supervisor

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class HttpServers:
    """Opens them, and closes them again.

    Args:
        settings: where to listen.
        ledger: has the files of each run.
        runs: what the calls act on.
        metrics: what `/metrics` shows.
        troubles: say whether the coordinator is ready.
        publisher: takes lines to Loki, if anything does.
        scaling: scales pods, in a cluster.
        file_store: has the files.
        file_access: gets the address of the files.
        clock_store: has the clock, and gets its address.
        signer: signs tickets and the clock.
        clock: Unix time.
        supervisor: of the clock's thread.
    """

    settings: CoordinatorSettings
    ledger: Ledger
    runs: Runs
    metrics: Metrics
    troubles: Troubles
    publisher: Publisher | None
    scaling: Scaling | None
    file_store: FileStore
    file_access: FileAccess
    clock_store: ClockStore
    signer: Signer
    clock: Clock
    supervisor: Supervisor
    _api: ApiServer = field(init=False)
    _files: ApiServer = field(init=False)
    _clock: ClockService | None = field(default=None, init=False)

    async def start(self) -> None:
        """Open them: workers can fetch files before one gets a lease that needs them."""
        await self._open_files()
        await self._open_api()

    async def stop(self) -> None:
        """Close them, and end what is under way."""
        if self._clock is not None:
            self._clock.end()
        await self._api.stop()
        await self._files.stop()

    async def _open_files(self) -> None:
        settings = self.settings
        if settings.files_listen_fd is not None:
            [listening] = adopt_sockets([settings.files_listen_fd])
        else:
            [listening] = open_sockets(settings.host, settings.files_port, 1, flag="--files-port")
        self.file_access.address = find_files_address(
            listening.getsockname()[:2],
            socket.gethostname(),
            settings.files_host or settings.clock_host,
            settings.files_address_port,
        )
        self._files = ApiServer(
            build_download_api(self.file_store, self.signer, self.clock, self.metrics.count_refusal),
            DOWNLOAD_LIMITS,
        )
        await self._files.start(listening)

    async def _open_api(self) -> None:
        settings = self.settings
        api = build_api(self.runs, self.metrics, settings.token, self.troubles, self.publisher, self.scaling)
        if settings.closes_metrics:
            close_metrics(api, settings.token)
        api.add_routes(build_upload_routes(self.file_store))
        api.add_routes(build_run_file_routes(self.ledger, self.file_store))
        self._api = ApiServer(api)
        if settings.listen_fd is not None:
            [listening] = adopt_sockets([settings.listen_fd])
        else:
            [listening] = open_sockets(settings.host, settings.port, 1)
        rejections = RejectionLog(_log, self.metrics.count_rejected, what="questions for the clock")
        health = self.supervisor.enlist("clock")
        self._clock = open_clock(settings, listening, self.clock_store, self.signer, health, rejections)
        await self._api.start(listening)
        address = format_address(listening)
        _log.info("listening on http://%s", address)
        if settings.ready_file:
            write_ready_file(settings.ready_file, address)
        if self._clock is not None:
            self._clock.start()

"""Kubernetes as the coordinator sees it: one object, or none outside a cluster."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.kube.cluster import enter_cluster
from oku_coordinator.kube.dns import PodServers, ServerDns
from oku_coordinator.kube.pods import PodReadiness
from oku_coordinator.kube.scale_plan import check_bounds, choose_workers
from oku_coordinator.kube.scaler import Scaler
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.servers.served_count import is_one_server
from oku_coordinator.settings import KubeSettings
from oku_coordinator.workers.assignment import WorkerLimits
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec


class KubeFacade(WorkerLimits):
    """Scales the pods of runs and finds their delay servers. `UserError` when this process is not a pod.

    Args:
        server_urls: of the delay servers. One that names all of them, a headless Service, is waited for until
            it does; the pods are asked at the port of the first.
        ledger: says which run has its turn.
        signals: begin a round when a run may begin that could not before.
    """

    def __init__(
        self, settings: KubeSettings, server_urls: Sequence[str], ledger: Ledger, signals: LoopSignals
    ) -> None:
        self._settings = settings
        self._cluster = enter_cluster(settings.namespace)
        self.dns = ServerDns(urlsplit(server_urls[0]).hostname or "") if has_one_name(server_urls) else None
        """Waits for the name of the delay servers, if they have one for all."""
        self._scaler = Scaler(settings, self._cluster, ledger, signals, self.dns)
        self.servers = (
            PodServers(self._cluster, settings.servers, server_urls[0]) if settings.servers else None
        )
        """Where the delay servers are, if they are scaled here."""

    def start(self, supervisor: Supervisor) -> None:
        """Begin to scale."""
        self._scaler.start(supervisor)

    async def end(self) -> None:
        """Leave everything as it is."""
        await self._scaler.end()
        await self._cluster.close()

    def check(self, spec: Spec) -> None:
        """Refuse a spec that wants more pods than there may be, with a `UserError`."""
        check_bounds(spec, self._settings)

    def may_start(self, run: RunRecord) -> bool:
        """Whether what a run needs beside workers is there."""
        return self._scaler.has_servers(run)

    def count_workers(self, spec: Spec) -> int:
        """How many worker pods a run gets."""
        return choose_workers(spec, self._settings)

    def count_assigned(self, run: RunRecord) -> int:
        """How many workers a run has: as many pods as there are to be, which people may change meanwhile."""
        size = self._scaler.find_size(run)
        return choose_workers(run.spec, self._settings) if size is None else size

    @property
    def workers(self) -> PodReadiness:
        """How many worker pods are there, of the run that has its turn."""
        return self._scaler.workers

    @property
    def delay_servers(self) -> PodReadiness:
        """How many delay server pods are ready, as long as the run waits for them."""
        return self._scaler.servers

    @property
    def trouble(self) -> str:
        """Which call the API refused or did not answer last; empty when all is well."""
        return self._scaler.trouble

    def describe(self) -> dict[str, Any]:
        """What may be scaled, and what is wrong, as the API tells it."""
        settings = self._settings
        return {
            "workers": settings.max_workers,
            "servers": settings.max_servers if settings.servers else 0,
            "trouble": self.trouble,
        }


def has_one_name(server_urls: Sequence[str]) -> bool:
    """Whether all delay servers have the same name: what several stand for together is not known."""
    return len(server_urls) == 1 and not is_one_server(server_urls[0])

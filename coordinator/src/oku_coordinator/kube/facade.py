"""The coordinator's view of Kubernetes: one object, or none outside a cluster."""

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
    """Scales the pods of runs and finds their delay servers. `UserError` if this process is not a pod.

    Args:
        server_urls: the URLs of the delay servers. A single headless Service must resolve to all of them
            before a run starts; the pods are queried at the port of the first URL.
        ledger: contains the run that has its turn.
        signals: start a round when a run becomes able to start.
    """

    def __init__(
        self, settings: KubeSettings, server_urls: Sequence[str], ledger: Ledger, signals: LoopSignals
    ) -> None:
        self._settings = settings
        self._cluster = enter_cluster(settings.namespace)
        self.dns = ServerDns(urlsplit(server_urls[0]).hostname or "") if has_one_name(server_urls) else None
        """Checks the name of the delay servers, if they share one."""
        self._scaler = Scaler(settings, self._cluster, ledger, signals, self.dns)
        self.servers = (
            PodServers(self._cluster, settings.servers, server_urls[0]) if settings.servers else None
        )
        """Where the delay servers are, if they are scaled here."""

    def start(self, supervisor: Supervisor) -> None:
        """Start scaling."""
        self._scaler.start(supervisor)

    async def end(self) -> None:
        """Stop scaling; sizes stay as they are."""
        await self._scaler.end()
        await self._cluster.close()

    def check(self, spec: Spec) -> None:
        """Reject a spec that requests more pods than allowed, with a `UserError`."""
        check_bounds(spec, self._settings)

    def may_start(self, run: RunRecord) -> bool:
        """Whether the delay servers that a run needs are ready."""
        return self._scaler.has_servers(run)

    def count_workers(self, spec: Spec) -> int:
        """How many worker pods a run gets."""
        return choose_workers(spec, self._settings)

    def count_assigned(self, run: RunRecord) -> int:
        """How many workers a run has: the intended number of pods, which may be scaled by hand meanwhile."""
        size = self._scaler.find_size(run)
        return choose_workers(run.spec, self._settings) if size is None else size

    @property
    def workers(self) -> PodReadiness:
        """The worker pods of the run that has its turn."""
        return self._scaler.workers

    @property
    def delay_servers(self) -> PodReadiness:
        """The delay server pods, while the run waits for them."""
        return self._scaler.servers

    @property
    def trouble(self) -> str:
        """The last call that the API rejected or did not answer; empty if there was none."""
        return self._scaler.trouble

    def describe(self) -> dict[str, Any]:
        """The limits of scaling and its problems, as a JSON object of the API."""
        settings = self._settings
        return {
            "workers": settings.max_workers,
            "servers": settings.max_servers if settings.servers else 0,
            "trouble": self.trouble,
        }


def has_one_name(server_urls: Sequence[str]) -> bool:
    """Whether all delay servers share one name; several names have no common set of addresses."""
    return len(server_urls) == 1 and not is_one_server(server_urls[0])

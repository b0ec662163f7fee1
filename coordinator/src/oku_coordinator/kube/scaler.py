"""Scales the Deployments for runs, and marks the busy workers.

It scales only at transitions: when a run gets its turn, and when no run has been active or pending for a
while. Scaling by hand during a run is left alone. A coordinator that starts and finds an active run assumes
that the sizes fit it, unless its Deployment has no pod at all.

A background task runs every two seconds. A call that the API rejects or does not answer is logged once and
repeated in the next round; the coordinator continues meanwhile.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from oku_coordinator.event_loop import BackgroundService, LoopSignals
from oku_coordinator.kube.cluster import Cluster, ClusterError
from oku_coordinator.kube.dns import ServerDns
from oku_coordinator.kube.pods import (
    Pod,
    PodReadiness,
    build_server_readiness,
    build_worker_readiness,
    find_cost_changes,
    is_enough,
)
from oku_coordinator.kube.scale_plan import IdleClock, choose_servers, choose_workers
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import lease_table, run_table
from oku_coordinator.settings import KubeSettings
from oku_core.process.clock import Clock
from oku_core.process.supervision import Health

_log = logging.getLogger(__name__)

POLL_S = 2.0
_MARK_S = 10.0
"""Between two updates of deletion costs: Kubernetes advises against frequent ones."""
_MOST_MARKED = 50
"""Pods annotated in one round."""
_GONE = 404


class CostMarker:
    """Gives busy workers a higher deletion cost: Kubernetes deletes others first."""

    def __init__(self, cluster: Cluster, clock: Clock = time.monotonic) -> None:
        self._cluster = cluster
        self._clock = clock
        self._marked_at = -_MARK_S
        self.trouble = ""
        """The last rejected call; empty if there was none."""

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next update."""
        return self._clock() - self._marked_at >= _MARK_S

    async def mark(self, pods: Sequence[Pod], held: Mapping[str, int]) -> None:
        """Correct the deletion costs; one rejected update does not prevent the others.

        Args:
            pods: worker pods.
            held: how many leases each worker has, by its name.

        Raises:
            ClusterError: the API does not answer.
        """
        self._marked_at = self._clock()
        refusals = []
        for pod, cost in list(find_cost_changes(pods, held).items())[:_MOST_MARKED]:
            try:
                await self._cluster.set_cost(pod, cost)
            except ClusterError as error:
                if not error.status:
                    raise
                if error.status != _GONE:  # pods come and go
                    refusals.append(str(error))
        self.trouble = next(iter(refusals), "")


class Scaler(BackgroundService):
    """Scales the Deployments of workers and delay servers; when it ends, sizes stay as they are."""

    service_name = "scaler"

    def __init__(
        self,
        settings: KubeSettings,
        cluster: Cluster,
        ledger: Ledger,
        signals: LoopSignals,
        dns: ServerDns | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._ledger = ledger
        self._signals = signals
        self._dns = dns
        self._clock = clock
        self._idle = IdleClock(settings.idle_s)
        self._has_run = False
        self._scaled_for: str | None = None
        self._scaled_at = 0.0
        self._ready_for: str | None = None
        """The run whose delay servers are ready."""
        self._cost_marker = CostMarker(cluster, clock)
        self.trouble = ""
        """Why the last round failed; empty if it did not."""
        self.workers = PodReadiness()
        """Of the run that has its turn, from the last round."""
        self.servers = PodReadiness()
        """The same of delay servers, until the run starts."""

    def has_servers(self, run: RunRecord) -> bool:
        """Whether the delay servers of a run are ready, or it needs none."""
        return not run.spec.brings_servers or not self._settings.servers or self._ready_for == run.run

    def find_size(self, run: RunRecord) -> int | None:
        """The intended number of worker pods; None until they were scaled for this run."""
        return self.workers.wanted if self._scaled_for == run.run else None

    async def scale(self) -> None:
        """Run one round; rejected calls are recorded as trouble."""
        try:
            with self._ledger.read() as t:
                run = run_table.fetch_current_run(t)
            if run is None:
                await self._rest()
            else:
                await self._prepare(run)
            self._has_run = True
        except ClusterError as error:
            self._record_trouble(str(error))
        else:
            self._record_trouble(self._cost_marker.trouble)

    async def _work(self, health: Health) -> None:
        while True:
            await self.scale()
            health.record_success()
            await asyncio.sleep(POLL_S)

    async def _rest(self) -> None:
        self._scaled_for = self._ready_for = None
        self.workers = self.servers = PodReadiness()
        if not self._idle.is_due(self._clock()):
            return
        await self._resize(self._settings.workers, lambda _: 0)
        if self._settings.servers:
            await self._resize(self._settings.servers, lambda now: min(now, self._settings.min_servers))
        self._idle.record_done()

    async def _prepare(self, run: RunRecord) -> None:
        self._idle.record_run()
        if self._scaled_for != run.run:
            await self._scale_for(run)
        is_active = run.is_active
        if is_active:
            self._ready_for = run.run
        elif self._settings.servers and run.spec.brings_servers:
            await self._await_servers(run)
        are_costs_due = is_active and self._cost_marker.is_due
        if not is_active or are_costs_due or not self.workers.is_complete:
            pods = await self._fetch_pods()
            if are_costs_due:
                with self._ledger.read() as t:
                    held = lease_table.count_held(t, run.run)
                await self._cost_marker.mark(pods, held)

    async def _scale_for(self, run: RunRecord) -> None:
        spec, settings = run.spec, self._settings
        is_found = not self._has_run and run.is_active
        self.workers = self.servers = PodReadiness()
        self._ready_for = None
        wanted = await self._resize(
            settings.workers,
            lambda current: current if is_found and current else choose_workers(spec, settings),
        )
        self.workers = PodReadiness(wanted=wanted)
        if settings.servers and spec.brings_servers:
            wanted = await self._resize(
                settings.servers,
                lambda current: current if is_found and current else choose_servers(spec, settings, current),
            )
            self.servers = PodReadiness(wanted=wanted)
        self._scaled_for, self._scaled_at = run.run, self._clock()

    async def _resize(self, deployment: str, choose: Callable[[int], int]) -> int:
        scale = await self._cluster.fetch_scale(deployment)
        wanted = choose(scale.replicas)
        if wanted != scale.replicas:
            await self._cluster.scale(deployment, wanted)
            _log.info("%s is scaled from %d to %d", deployment, scale.replicas, wanted)
        return wanted

    async def _await_servers(self, run: RunRecord) -> None:
        scale = await self._cluster.fetch_scale(self._settings.servers)
        pods = await self._cluster.fetch_pods(scale.selector)
        servers = build_server_readiness(pods, self.servers.wanted)
        may_start = is_enough(servers, self._clock() - self._scaled_at)
        if may_start and self._dns is not None:
            self.servers = replace(servers, obstacle=self.servers.obstacle)  # until DNS has answered
            obstacle = await self._dns.find_obstacle([pod for pod in pods if pod.is_ready])
            servers, may_start = replace(servers, obstacle=obstacle), not obstacle
        if not may_start:
            self._ready_for = None
            servers = await self._explain(servers, self._settings.servers)
        elif self._ready_for != run.run:
            self._ready_for = run.run
            self._signals.wake()
        self.servers = servers

    async def _fetch_pods(self) -> Sequence[Pod]:
        scale = await self._cluster.fetch_scale(self._settings.workers)
        pods = await self._cluster.fetch_pods(scale.selector)
        workers = build_worker_readiness(pods, scale.replicas)
        self.workers = await self._explain(workers, self._settings.workers)
        return pods

    async def _explain(self, readiness: PodReadiness, deployment: str) -> PodReadiness:
        """Explain missing pods that no pod accounts for: Kubernetes may reject them, as by a quota."""
        if readiness.is_complete or readiness.obstacle:
            return readiness
        return replace(readiness, obstacle=await self._cluster.fetch_failure(deployment))

    def _record_trouble(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            _log.warning("Kubernetes refused a call or did not answer, trying again: %s", trouble)
        elif self.trouble and not trouble:
            _log.info("Kubernetes answers again")
        self.trouble = trouble

"""Tells Kubernetes which workers are busy, so that it deletes others first."""

import time
from collections.abc import Mapping, Sequence

from oku_coordinator.kube.cluster import Cluster, ClusterError
from oku_coordinator.kube.pods import Pod, find_cost_changes
from oku_core.process.clock import Clock

_EVERY_S = 10.0
_MOST = 50
"""Pods that are annotated at one look."""
_GONE = 404


class CostMarker:
    """Marks busy workers with a higher deletion cost.

    Args:
        cluster: the API.
        clock: monotonic seconds.
    """

    def __init__(self, cluster: Cluster, clock: Clock = time.monotonic) -> None:
        self._cluster = cluster
        self._clock = clock
        self._marked_at = -_EVERY_S
        self.trouble = ""
        """What was refused the last time; empty when nothing was."""

    @property
    def is_due(self) -> bool:
        """Whether it is time; Kubernetes asks not to change costs often."""
        return self._clock() - self._marked_at >= _EVERY_S

    async def mark(self, pods: Sequence[Pod], held: Mapping[str, int]) -> None:
        """Set the deletion costs that are not right; one that is refused keeps no other from it.

        Args:
            pods: of workers.
            held: how many leases each worker has, by its name.

        Raises:
            ClusterError: the API does not answer.
        """
        self._marked_at = self._clock()
        refusals = []
        for pod, cost in list(find_cost_changes(pods, held).items())[:_MOST]:
            try:
                await self._cluster.set_cost(pod, cost)
            except ClusterError as error:
                if not error.status:
                    raise
                if error.status != _GONE:  # pods come and go
                    refusals.append(str(error))
        self.trouble = next(iter(refusals), "")

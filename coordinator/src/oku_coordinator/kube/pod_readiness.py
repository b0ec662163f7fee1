"""How many of the wanted pods are there, and what keeps the others away: pure rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from oku_coordinator.kube.pods import Pod

SERVERS_WITHIN_S = 60.0
"""After this long the delay servers that are ready are enough, if there is at least one."""


@dataclass(frozen=True)
class PodReadiness:
    """The pods of a Deployment at one moment.

    Args:
        there: how many run, of servers how many are ready.
        wanted: how many there are to be.
        obstacle: what keeps one of the others away, where Kubernetes says so; else empty.
        surplus: how many more answer and are about to go, or will be.
    """

    there: int = 0
    wanted: int = 0
    obstacle: str = ""
    surplus: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether none is missing."""
        return self.there >= self.wanted


def build_worker_readiness(pods: Sequence[Pod], wanted: int) -> PodReadiness:
    """Workers are there when they run."""
    return PodReadiness(sum(pod.is_running and not pod.obstacle for pod in pods), wanted, find_obstacle(pods))


def build_server_readiness(pods: Sequence[Pod], wanted: int) -> PodReadiness:
    """Delay servers are there when they are ready.

    A Deployment that was made smaller has too many for a while.
    """
    there, leaving = sum(pod.is_ready for pod in pods), sum(pod.is_leaving for pod in pods)
    surplus = leaving + max(0, there - wanted)
    return PodReadiness(there, wanted, find_obstacle(pods), surplus)


def is_enough(servers: PodReadiness, waited_s: float) -> bool:
    """Whether these delay servers are enough for a run: not with one that leaves in its first seconds."""
    if waited_s >= SERVERS_WITHIN_S:
        return servers.there > 0
    return servers.is_complete and not servers.surplus


def find_obstacle(pods: Sequence[Pod]) -> str:
    """What keeps the first pod back of those that something keeps back; those that have failed come last."""
    stuck = sorted((pod for pod in pods if pod.obstacle), key=lambda pod: pod.status.phase == "Failed")
    return stuck[0].obstacle if stuck else ""

"""How many pods of those that are wanted are there, and what keeps the others away: pure rules."""

from collections.abc import Sequence
from dataclasses import dataclass

from oku_coordinator.kube.pods import Pod


@dataclass(frozen=True)
class Turnout:
    """The pods of a Deployment at one moment.

    Args:
        there: how many run, of servers how many are ready.
        wanted: how many there are to be.
        obstacle: what keeps one of the others away, where Kubernetes says so; else empty.
    """

    there: int = 0
    wanted: int = 0
    obstacle: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether none is missing."""
        return self.there >= self.wanted


def build_worker_turnout(pods: Sequence[Pod], wanted: int) -> Turnout:
    """Workers are there when they run."""
    return Turnout(sum(pod.is_running and not pod.obstacle for pod in pods), wanted, find_obstacle(pods))


def build_server_turnout(pods: Sequence[Pod], wanted: int) -> Turnout:
    """Delay servers are there when they are ready."""
    return Turnout(sum(pod.is_ready for pod in pods), wanted, find_obstacle(pods))


def find_obstacle(pods: Sequence[Pod]) -> str:
    """What keeps the first pod back of those that something keeps back."""
    return next((pod.obstacle for pod in pods if pod.obstacle), "")

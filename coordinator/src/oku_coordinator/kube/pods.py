"""Pods as far as they matter here, and which of them should be deleted last: pure rules.

A ReplicaSet that is made smaller deletes the pods with the lowest deletion cost first. It is set when a
worker becomes busy or idle, not with each lease: Kubernetes asks not to change it often.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
IDLE_COST = 0
"""That of a pod without the annotation, too."""
BUSY_COST = 100
_LONGEST_OBSTACLE = 200
"""Characters."""
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons for which every container waits for a while."""
_NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
_CRASHING = "CrashLoopBackOff"
_OWN_COMPONENTS = frozenset({"coordinator", "workers", "servers"})
"""They share the image of Oku."""
_COMPONENT_LABEL = "app.kubernetes.io/component"
SERVERS_WITHIN_S = 60.0
"""After this long the delay servers that are ready are enough, if there is at least one."""


class PodCondition(msgspec.Struct):
    """One of the conditions of a pod."""

    type: str
    status: str
    message: str = ""


class Waiting(msgspec.Struct):
    """Why a container does not run yet, or not any more."""

    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(msgspec.Struct):
    """What a container does: at most one of these, none while it runs."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class Container(msgspec.Struct, rename="camel"):
    """A container of a pod, and how it ended before it was started again."""

    name: str = ""
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)


class Metadata(msgspec.Struct, rename="camel"):
    """Where a pod is, its labels and annotations, and when it is to be gone if it was deleted."""

    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class PodIp(msgspec.Struct):
    """One of the addresses of a pod."""

    ip: str


class Status(msgspec.Struct):
    """How a pod is doing, and why where it has no container that could tell."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    ip: str = msgspec.field(default="", name="podIP")
    ips: list[PodIp] | None = msgspec.field(default=None, name="podIPs")
    conditions: list[PodCondition] | None = None
    init_containers: list[Container] | None = msgspec.field(default=None, name="initContainerStatuses")
    containers: list[Container] | None = msgspec.field(default=None, name="containerStatuses")


class Pod(msgspec.Struct):
    """A pod as the API tells of it, without the rest."""

    metadata: Metadata
    status: Status = msgspec.field(default_factory=Status)

    @property
    def name(self) -> str:
        """Of the pod; a worker has the same."""
        return self.metadata.name

    @property
    def where(self) -> str:
        """The flag that names its namespace in a command of kubectl; empty if that is not known."""
        return f"-n {self.metadata.namespace} " if self.metadata.namespace else ""

    @property
    def ips(self) -> set[str]:
        """Its addresses, of both families where it has them."""
        return {each.ip for each in self.status.ips or ()} | ({self.status.ip} - {""})

    @property
    def is_running(self) -> bool:
        """Whether its containers were started and have not ended for good; it may be about to leave."""
        return self.status.phase == "Running" and bool(self.status.ip)

    @property
    def is_leaving(self) -> bool:
        """Whether it was deleted and is about to end."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        """Whether it is to be sent requests."""
        conditions = self.status.conditions or ()
        is_ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
        return is_ready and self.is_running and not self.is_leaving

    @property
    def obstacle(self) -> str:
        """What keeps it from running, in the first sentence that Kubernetes has for it; else empty.

        What helps follows: what to set where its image cannot be pulled, and where a log says more.
        """
        for condition in self.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                return shorten_message(condition.message or "it has no node yet")
        for container in self._containers:
            waiting = container.state.waiting
            if waiting is not None and waiting.reason not in _ON_ITS_WAY:
                said = _join_reason(waiting.reason, waiting.message)
                hint = self._hint(waiting.reason, container)
                return f"{said} ({hint})" if hint else said
        if self.status.phase == "Failed":
            return _join_reason(self.status.reason, self.status.message)
        ended = ((each, each.state.terminated) for each in self._containers)
        return next((self._describe_end(each, end) for each, end in ended if end and end.exit_code), "")

    @property
    def last_crash(self) -> str:
        """How the last container that was started again had ended; empty if none was, or all ended well."""
        ended = ((each, each.last_state.terminated) for each in self._containers)
        crashes = [
            self._describe_end(each, end, "--previous ") for each, end in ended if end and end.exit_code
        ]
        return crashes[-1] if crashes else ""

    @property
    def component(self) -> str:
        """The component of the release that it belongs to; empty if it does not say."""
        return (self.metadata.labels or {}).get(_COMPONENT_LABEL, "")

    @property
    def _containers(self) -> list[Container]:
        """Those that run before the others come first: what holds one of them up holds up the rest."""
        return [*(self.status.init_containers or ()), *(self.status.containers or ())]

    def _hint(self, reason: str, container: Container) -> str:
        if reason in _NO_IMAGE:
            shares = not self.component or self.component in _OWN_COMPONENTS
            value = "image.registry" if shares else f"{self.component}.image.registry"
            return f"set {value} of the chart to a registry that has the image and that nodes can pull from"
        return self._point_to_log(container, "--previous ") if reason == _CRASHING else ""

    def _describe_end(self, container: Container, end: Terminated, flag: str = "") -> str:
        said = _join_reason(end.reason or "Error", end.message or f"exit code {end.exit_code}")
        return f"{said} ({self._point_to_log(container, flag)})"

    def _point_to_log(self, container: Container, flag: str) -> str:
        which = f" -c {container.name}" if len(self._containers) > 1 and container.name else ""
        return f"kubectl logs {self.where}{flag}{self.name}{which} shows why"

    @property
    def cost(self) -> int | None:
        """Its deletion cost; None when what stands there is no number."""
        text = (self.metadata.annotations or {}).get(COST_ANNOTATION, str(IDLE_COST))
        try:
            return int(text)
        except ValueError:
            return None


def find_cost_changes(pods: Iterable[Pod], held: Mapping[str, int]) -> dict[str, int]:
    """The pods whose deletion cost is not what it should be, with what it should be, the busy ones first.

    Args:
        pods: of workers.
        held: how many leases each worker has, by its name.
    """
    wanted = {pod.name: BUSY_COST if held.get(pod.name) else IDLE_COST for pod in pods}
    changes = {pod.name: wanted[pod.name] for pod in pods if pod.cost != wanted[pod.name]}
    return dict(sorted(changes.items(), key=lambda change: -change[1]))


def _join_reason(reason: str, message: str) -> str:
    return shorten_message(": ".join(filter(None, (reason, message))))


def shorten_message(message: str) -> str:
    """The first sentence of what Kubernetes says, and not too much of it.

    The scheduler goes on with what it has tried beside, others with the whole chain of what failed.
    """
    first = " ".join(message.split()).partition(". ")[0].removesuffix(".")
    return textwrap.shorten(first, _LONGEST_OBSTACLE, placeholder=" …")


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

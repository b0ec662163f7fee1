"""The relevant part of a pod, and the deletion order of pods: pure rules.

A shrinking ReplicaSet deletes the pods with the lowest deletion cost first. The cost is set when a worker
becomes busy or idle, not with each lease: Kubernetes advises against frequent updates.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
IDLE_COST = 0
"""Also the cost of a pod without the annotation."""
BUSY_COST = 100
_LONGEST_OBSTACLE = 200
"""Characters."""
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons that every container passes through."""
_NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
_CRASHING = "CrashLoopBackOff"
_OWN_COMPONENTS = frozenset({"coordinator", "workers", "servers"})
"""They share the image of Oku."""
_COMPONENT_LABEL = "app.kubernetes.io/component"
SERVERS_WITHIN_S = 60.0
"""After this long, the ready delay servers are enough, if there is at least one."""


class PodCondition(msgspec.Struct):
    """One of the conditions of a pod."""

    type: str
    status: str
    message: str = ""


class Waiting(msgspec.Struct):
    """Why a container is not running."""

    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(msgspec.Struct):
    """The state of a container: at most one of these, none while it runs."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class Container(msgspec.Struct, rename="camel"):
    """A container of a pod, and how it ended before its last restart."""

    name: str = ""
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)


class Metadata(msgspec.Struct, rename="camel"):
    """Namespace, labels and annotations of a pod, and when it is due to be gone if it was deleted."""

    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class PodIp(msgspec.Struct):
    """One of the addresses of a pod."""

    ip: str


class Status(msgspec.Struct):
    """The phase of a pod, with its reason where no container has one."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    ip: str = msgspec.field(default="", name="podIP")
    ips: list[PodIp] | None = msgspec.field(default=None, name="podIPs")
    conditions: list[PodCondition] | None = None
    init_containers: list[Container] | None = msgspec.field(default=None, name="initContainerStatuses")
    containers: list[Container] | None = msgspec.field(default=None, name="containerStatuses")


class Pod(msgspec.Struct):
    """A pod, with the fields that matter here."""

    metadata: Metadata
    status: Status = msgspec.field(default_factory=Status)

    @property
    def name(self) -> str:
        """The name of the pod, which is also its worker's name."""
        return self.metadata.name

    @property
    def where(self) -> str:
        """The namespace flag for kubectl commands; empty if the namespace is unknown."""
        return f"-n {self.metadata.namespace} " if self.metadata.namespace else ""

    @property
    def ips(self) -> set[str]:
        """Its addresses, of both families if it has them."""
        return {each.ip for each in self.status.ips or ()} | ({self.status.ip} - {""})

    @property
    def is_running(self) -> bool:
        """Whether its containers were started and have not ended for good; it may be terminating."""
        return self.status.phase == "Running" and bool(self.status.ip)

    @property
    def is_leaving(self) -> bool:
        """Whether it was deleted and is terminating."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        """Whether it may receive requests."""
        conditions = self.status.conditions or ()
        is_ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
        return is_ready and self.is_running and not self.is_leaving

    @property
    def obstacle(self) -> str:
        """Why it is not running: the first sentence of Kubernetes' message; empty if it runs.

        Followed by advice: which setting to change if its image cannot be pulled, and where the log is.
        """
        for condition in self.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                return shorten_message(condition.message or "it has no node yet")
        for container in self._containers:
            waiting = container.state.waiting
            if waiting is not None and waiting.reason not in _ON_ITS_WAY:
                text = _join_reason(waiting.reason, waiting.message)
                hint = self._hint(waiting.reason, container)
                return f"{text} ({hint})" if hint else text
        if self.status.phase == "Failed":
            return _join_reason(self.status.reason, self.status.message)
        ended = ((each, each.state.terminated) for each in self._containers)
        return next((self._describe_end(each, end) for each, end in ended if end and end.exit_code), "")

    @property
    def last_crash(self) -> str:
        """How the last restarted container had ended; empty if none was restarted, or all ended well."""
        ended = ((each, each.last_state.terminated) for each in self._containers)
        crashes = [
            self._describe_end(each, end, "--previous ") for each, end in ended if end and end.exit_code
        ]
        return crashes[-1] if crashes else ""

    @property
    def component(self) -> str:
        """The component of the release that it belongs to; empty if it is not labelled."""
        return (self.metadata.labels or {}).get(_COMPONENT_LABEL, "")

    @property
    def _containers(self) -> list[Container]:
        """Its containers, init containers first: the others wait for them."""
        return [*(self.status.init_containers or ()), *(self.status.containers or ())]

    def _hint(self, reason: str, container: Container) -> str:
        if reason in _NO_IMAGE:
            shares = not self.component or self.component in _OWN_COMPONENTS
            value = "image.registry" if shares else f"{self.component}.image.registry"
            return f"set {value} of the chart to a registry that has the image and that nodes can pull from"
        return self._point_to_log(container, "--previous ") if reason == _CRASHING else ""

    def _describe_end(self, container: Container, end: Terminated, flag: str = "") -> str:
        text = _join_reason(end.reason or "Error", end.message or f"exit code {end.exit_code}")
        return f"{text} ({self._point_to_log(container, flag)})"

    def _point_to_log(self, container: Container, flag: str) -> str:
        which = f" -c {container.name}" if len(self._containers) > 1 and container.name else ""
        return f"kubectl logs {self.where}{flag}{self.name}{which} shows why"

    @property
    def cost(self) -> int | None:
        """Its deletion cost; None if the annotation is not a number."""
        text = (self.metadata.annotations or {}).get(COST_ANNOTATION, str(IDLE_COST))
        try:
            return int(text)
        except ValueError:
            return None


def find_cost_changes(pods: Iterable[Pod], held: Mapping[str, int]) -> dict[str, int]:
    """The pods with a wrong deletion cost, and the right one, busy pods first.

    Args:
        pods: worker pods.
        held: how many leases each worker has, by its name.
    """
    wanted = {pod.name: BUSY_COST if held.get(pod.name) else IDLE_COST for pod in pods}
    changes = {pod.name: wanted[pod.name] for pod in pods if pod.cost != wanted[pod.name]}
    return dict(sorted(changes.items(), key=lambda change: -change[1]))


def _join_reason(reason: str, message: str) -> str:
    return shorten_message(": ".join(filter(None, (reason, message))))


def shorten_message(message: str) -> str:
    """The first sentence of a Kubernetes message, shortened.

    The scheduler continues with the alternatives that it tried, others with the whole chain of errors.
    """
    first = " ".join(message.split()).partition(". ")[0].removesuffix(".")
    return textwrap.shorten(first, _LONGEST_OBSTACLE, placeholder=" …")


@dataclass(frozen=True)
class PodReadiness:
    """The pods of a Deployment at one moment.

    Args:
        there: how many run; of servers, how many are ready.
        wanted: the intended number.
        obstacle: why one of the others is missing, as Kubernetes reports it; else empty.
        surplus: how many more still answer and are being removed.
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
    """Workers count when they run."""
    return PodReadiness(sum(pod.is_running and not pod.obstacle for pod in pods), wanted, find_obstacle(pods))


def build_server_readiness(pods: Sequence[Pod], wanted: int) -> PodReadiness:
    """Delay servers count when they are ready.

    A Deployment that was made smaller has too many for a while.
    """
    there, leaving = sum(pod.is_ready for pod in pods), sum(pod.is_leaving for pod in pods)
    surplus = leaving + max(0, there - wanted)
    return PodReadiness(there, wanted, find_obstacle(pods), surplus)


def is_enough(servers: PodReadiness, waited_s: float) -> bool:
    """Whether these delay servers are enough for a run; not while one may stop in its first seconds."""
    if waited_s >= SERVERS_WITHIN_S:
        return servers.there > 0
    return servers.is_complete and not servers.surplus


def find_obstacle(pods: Sequence[Pod]) -> str:
    """The obstacle of the first pod that has one; pods that have failed come last."""
    stuck = sorted((pod for pod in pods if pod.obstacle), key=lambda pod: pod.status.phase == "Failed")
    return stuck[0].obstacle if stuck else ""

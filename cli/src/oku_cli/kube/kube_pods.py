"""Finds out from Kubernetes why the coordinator of a release, or its broker, does not run.

Nothing depends on it: what the user may not see is left out. `list pods` is enough for most of it; the reason
why a pod cannot be made is in its Deployment, and why its volumes cannot be mounted only in events.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.kube.kubectl import Kubectl
from oku_coordinator.kube.pods import Pod, PodCondition, find_obstacle, shorten_message
from oku_core.errors import UserError

_T = TypeVar("_T")

INSTANCE = "app.kubernetes.io/instance"
_SCHEDULING = "FailedScheduling"
"""Reason of an event that remains when the pod has its node; the conditions of the pod are up to date."""


class _Replicas(msgspec.Struct):
    replicas: int = 1


class _Conditions(msgspec.Struct):
    conditions: list[PodCondition] = []


class _Name(msgspec.Struct):
    name: str
    namespace: str


class _Deployment(msgspec.Struct):
    metadata: _Name
    spec: _Replicas = msgspec.field(default_factory=_Replicas)
    status: _Conditions = msgspec.field(default_factory=_Conditions)


class _Event(msgspec.Struct, rename="camel"):
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None


class KubePods:
    """The pods of a release, and why some of them do not run according to Kubernetes."""

    def __init__(self, kubectl: Kubectl, release: str) -> None:
        self._kubectl = kubectl
        self.release = release

    async def explain(self) -> str:
        """Explain in a line why the coordinator does not answer; empty if Kubernetes does not show it."""
        try:
            pods = await self._fetch("pods", "coordinator", Pod)
            staying = [pod for pod in pods if not pod.is_leaving]
            if not staying:
                return await self._explain_absence()
            if obstacle := find_common_obstacle(staying):
                return obstacle
            return await self._explain_delay(staying[-1])
        except (UserError, UnreachableError, msgspec.ValidationError):
            return ""  # it may be that pods cannot be seen either

    async def find_broker_obstacle(self) -> str:
        """Return in a line why the Valkey of the release does not run; empty if no reason is known."""
        try:
            pods = await self._fetch("pods", "valkey", Pod)
        except (UserError, UnreachableError, msgspec.ValidationError):
            return ""
        return find_common_obstacle([pod for pod in pods if not pod.is_leaving])

    async def _explain_absence(self) -> str:
        try:
            deployments = await self._fetch("deployments", "coordinator", _Deployment)
        except UserError:
            # kubectl would complain that it may not watch for one.
            return "it has no pod (it may be restarting, or scaled to 0)"
        for deployment in deployments:
            if deployment.spec.replicas == 0:
                where = f"-n {deployment.metadata.namespace} deployment/{deployment.metadata.name}"
                return f"it is scaled to 0 (kubectl scale {where} --replicas=1 starts it)"
            for condition in deployment.status.conditions:
                if condition.type == "ReplicaFailure" and condition.status == "True":
                    return shorten_message(condition.message)
        return ""

    async def _explain_delay(self, pod: Pod) -> str:
        """Explain a pod that has no obstacle and does not answer: it is being started, or has crashed."""
        if pod.is_running:
            return "" if pod.is_ready else pod.last_crash
        try:
            flags = ("--field-selector", f"involvedObject.name={pod.name},type=Warning")
            found = await self._kubectl.fetch("events", "", *flags)
        except (UserError, UnreachableError):
            found = []
        events = [event for event in msgspec.convert(found, list[_Event]) if event.reason != _SCHEDULING]
        if events:
            return shorten_message(max(events, key=lambda event: event.last_timestamp or "").message)
        return f"its pod is {pod.status.phase} (kubectl describe {pod.where}pod {pod.name} shows more)"

    async def _fetch(self, kind: str, component: str, wanted: type[_T]) -> list[_T]:
        found = await self._kubectl.fetch(kind, build_selector(self.release, component))
        return [msgspec.convert(each, wanted) for each in found]


def build_selector(release: str, component: str = "coordinator") -> str:
    """Build the label selector for a component of a release, or of any release if that is empty."""
    labels = f"app.kubernetes.io/name=oku,app.kubernetes.io/component={component}"
    return f"{labels},{INSTANCE}={release}" if release else labels


def find_common_obstacle(pods: Sequence[Pod]) -> str:
    """The obstacle that keeps all of these pods from running; empty if one of them runs, or none is known."""
    return "" if any(pod.is_running and not pod.obstacle for pod in pods) else find_obstacle(pods)

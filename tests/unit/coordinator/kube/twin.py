"""The few calls of the Kubernetes API that are made, answered by a small server of our own."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "bearer of-the-pod"


@dataclass
class Kubernetes:
    """The Deployments and pods of the namespace `oku`; `failures` are answered first, one by one."""

    replicas: dict[str, int] = field(default_factory=lambda: {"w": 0, "s": 0})
    pods: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"w": [], "s": []})
    failures: list[web.Response] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    """Statuses of the answers to calls whose path ends so."""
    conditions: list[dict[str, Any]] = field(default_factory=list)
    """Of each Deployment."""
    patches: list[tuple[str, Any]] = field(default_factory=list)
    calls: int = 0
    hang_s: float = 0.0

    def add_pod(self, deployment: str, name: str, *, ready: bool = True, **changes: Any) -> None:
        """A pod that runs."""
        pod = {
            "metadata": {"name": name, "labels": {"app": deployment}},
            "spec": {"containers": []},
            "status": {
                "phase": "Running",
                "podIP": "127.0.0.1",
                "conditions": [{"type": "Ready", "status": str(ready)}],
            }
            | changes,
        }
        self.pods[deployment].append(pod)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one call."""
        self.calls += 1
        await asyncio.sleep(self.hang_s)
        if refusal := self._find_refusal(request):
            return refusal
        scale = re.fullmatch(r"/apis/apps/v1/namespaces/oku/deployments/(\w+)/scale", request.path)
        if scale and (name := scale[1]) in self.replicas:
            if request.method == "PATCH":
                self.replicas[name] = (await self._read_patch(request))["spec"]["replicas"]
            return self._tell_scale(name)
        if re.fullmatch(r"/apis/apps/v1/namespaces/oku/deployments/[ws]", request.path):
            return web.json_response({"kind": "Deployment", "status": {"conditions": self.conditions}})
        if request.path == "/api/v1/namespaces/oku/pods":
            return web.json_response(
                {"items": self.pods[request.query["labelSelector"].removeprefix("app=")]}
            )
        for pod in self.pods["w"]:
            if request.path == f"/api/v1/namespaces/oku/pods/{pod['metadata']['name']}":
                pod["metadata"] |= (await self._read_patch(request))["metadata"]
                return web.json_response(pod)
        return refuse(404, f'"{request.path}" not found')

    def _find_refusal(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") != TOKEN:
            return refuse(401, "Unauthorized")
        if self.failures:
            return self.failures.pop(0)
        status = self.refusals.get(request.path.rpartition("/")[2])
        return refuse(status, "not allowed") if status else None

    async def _read_patch(self, request: web.Request) -> Any:
        assert request.content_type == "application/merge-patch+json"
        patch = await request.json()
        self.patches.append((request.path.split("/")[-1], patch))
        return patch

    def _tell_scale(self, name: str) -> web.Response:
        spec, status = {"replicas": self.replicas[name]}, {"replicas": 0, "selector": f"app={name}"}
        if not self.replicas[name]:
            del spec["replicas"]  # as Kubernetes leaves out what is 0
        return web.json_response({"kind": "Scale", "spec": spec, "status": status})


def refuse(status: int, message: str) -> web.Response:
    """An error as Kubernetes tells it."""
    return web.json_response({"kind": "Status", "message": message, "code": status}, status=status)

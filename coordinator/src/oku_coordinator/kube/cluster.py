"""The Kubernetes API: five calls, with the pod's own service account.

Of the client library this uses the in-cluster configuration (address, certificates, a token that is reread)
and the asyncio transport. Its generated classes for API objects take 170 MB and two seconds to load, for a
few fields of three objects; those are decoded here. Polling replaces watches, which may end without an error.
"""

from typing import Any, TypeVar

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.incluster_config import load_incluster_config

from oku_coordinator.kube.pods import COST_ANNOTATION, Pod, PodCondition, shorten_message
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError

_T = TypeVar("_T")

_FORBIDDEN = 403
_PATCH_HEADERS = {"PATCH": {"Content-Type": "application/merge-patch+json"}}


class ClusterError(Exception):
    """A call to the API has failed.

    Args:
        text: one line for users.
        status: the status of the response, 0 without one.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _ScaleSpec(msgspec.Struct):
    replicas: int = 0


class _ScaleStatus(msgspec.Struct):
    selector: str = ""


class DeploymentScale(msgspec.Struct):
    """The size of a Deployment and the selector of its pods."""

    spec: _ScaleSpec
    status: _ScaleStatus

    @property
    def replicas(self) -> int:
        """The number of pods that it should have."""
        return self.spec.replicas

    @property
    def selector(self) -> str:
        """The labels of its pods."""
        return self.status.selector


class _DeploymentStatus(msgspec.Struct):
    conditions: list[PodCondition] = []


class _Deployment(msgspec.Struct):
    status: _DeploymentStatus = msgspec.field(default_factory=_DeploymentStatus)


class _PodList(msgspec.Struct):
    items: list[Pod]


class _Refusal(msgspec.Struct):
    message: str = ""


_SCALE: JsonDecoder[DeploymentScale] = JsonDecoder(DeploymentScale)
_DEPLOYMENT: JsonDecoder[_Deployment] = JsonDecoder(_Deployment)
_PODS: JsonDecoder[_PodList] = JsonDecoder(_PodList)
_REFUSAL: JsonDecoder[_Refusal] = JsonDecoder(_Refusal)


class Cluster:
    """The Deployments and pods of one namespace. Every call may raise `ClusterError`."""

    def __init__(self, namespace: str, configuration: Configuration, timeout_s: float = 5.0) -> None:
        self._namespace = namespace
        self.configuration = configuration
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._client: ApiClient | None = None

    async def fetch_scale(self, deployment: str) -> DeploymentScale:
        """The size of a Deployment."""
        return _decode(_SCALE, await self._call("GET", self._build_scale_path(deployment)))

    async def scale(self, deployment: str, replicas: int) -> None:
        """Set the size of a Deployment."""
        body = {"spec": {"replicas": replicas}}
        await self._call("PATCH", self._build_scale_path(deployment), body=body)

    async def fetch_failure(self, deployment: str) -> str:
        """Why Kubernetes cannot create pods for a Deployment, in its own words; empty if it can.

        Also empty without the permission to read it.
        """
        try:
            content = await self._call("GET", self._build_path(deployment))
        except ClusterError as error:
            if error.status == _FORBIDDEN:
                return ""
            raise
        conditions = _decode(_DEPLOYMENT, content).status.conditions
        failures = [each for each in conditions if each.type == "ReplicaFailure" and each.status == "True"]
        return shorten_message(failures[0].message) if failures else ""

    async def fetch_pods(self, selector: str) -> list[Pod]:
        """The pods with these labels."""
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        return _decode(_PODS, await self._call("GET", path, query=[("labelSelector", selector)])).items

    async def set_cost(self, pod: str, cost: int) -> None:
        """Set the deletion cost of a pod."""
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}"
        await self._call("PATCH", path, body={"metadata": {"annotations": {COST_ANNOTATION: str(cost)}}})

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    def _build_path(self, deployment: str) -> str:
        return f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}"

    def _build_scale_path(self, deployment: str) -> str:
        return f"{self._build_path(deployment)}/scale"

    async def _call(
        self, method: str, path: str, *, query: list[tuple[str, str]] | None = None, body: Any = None
    ) -> bytes:
        try:
            if self._client is None:  # it needs a running event loop
                self._client = ApiClient(self.configuration)
            _, url, headers, data, _ = await self._client.param_serialize(
                method,
                path,
                query_params=query or [],
                header_params={"Accept": "application/json"} | _PATCH_HEADERS.get(method, {}),
                body=body,
                auth_settings=["BearerToken"],
            )
            response = await self._client.call_api(method, url, headers, data, _request_timeout=self._timeout)
            content: bytes = await response.read()
        except (aiohttp.ClientError, ConfigException, OSError, TimeoutError) as error:
            raise ClusterError(f"{method} {path}: {str(error) or type(error).__name__}") from error
        if not 200 <= response.status < 300:
            text = f"{method} {path}: {response.status} {response.reason}"
            raise ClusterError(f"{text}: {_read_message(content)}", response.status)
        return content


def enter_cluster(namespace: str) -> Cluster:
    """The cluster of this pod; `UserError` if this process is not in a pod."""
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
    except ConfigException as error:
        raise UserError(f"--kube-workers: this is not a pod with a service account: {error}") from error
    # Clusters create their own certificates. Many lack an authority key identifier (RFC 5280), which Python
    # 3.13 requires beside a trusted chain.
    configuration.disable_strict_ssl_verification = True
    return Cluster(namespace, configuration)


def _decode(decoder: JsonDecoder[_T], content: bytes) -> _T:
    try:
        return decoder.decode(content)
    except JsonError as error:
        raise ClusterError(f"the response is not from Kubernetes: {error}") from error


def _read_message(content: bytes) -> str:
    try:
        message = _REFUSAL.decode(content).message
    except JsonError:
        message = ""
    return " ".join(message.split()) or "no reason given"

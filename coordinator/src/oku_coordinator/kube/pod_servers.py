"""Finds the delay servers by their pods.

Names in DNS are up to half a minute behind, and only ready pods are behind them; the API knows every pod that
may have been sent a request.
"""

from urllib.parse import urlsplit

from oku_coordinator.kube.cluster import Cluster, ClusterError
from oku_coordinator.servers.served_count import Address, NotFoundError


class PodServers:
    """The pods of a Deployment.

    Args:
        cluster: the API.
        deployment: its name.
        url: of the service before them; their port is the same.
    """

    is_fixed = False

    def __init__(self, cluster: Cluster, deployment: str, url: str) -> None:
        self._cluster = cluster
        self._deployment = deployment
        parts = urlsplit(url)
        self._port = parts.port or 80
        self._host = parts.netloc

    async def find(self) -> list[Address]:
        """Where each of them answers, those that are about to leave included."""
        try:
            scale = await self._cluster.fetch_scale(self._deployment)
            pods = await self._cluster.fetch_pods(scale.selector)
        except ClusterError as error:
            raise NotFoundError(str(error)) from error
        return [Address(build_url(pod.status.ip, self._port), self._host) for pod in pods if pod.is_running]


def build_url(ip: str, port: int) -> str:
    """The address of a pod, IPv6 in brackets."""
    return f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}"

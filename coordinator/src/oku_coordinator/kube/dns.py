"""Checks that the name of the delay servers resolves to the current pods.

Workers find them by DNS, which caches its answers for up to half a minute. It still lists a server that has
gone, and a connection to that address hangs until it times out. It does not list a new one yet: if only one
of four is known, that one gets all the load.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from oku_coordinator.kube.cluster import Cluster, ClusterError
from oku_coordinator.kube.pods import Pod
from oku_coordinator.servers.served_count import Address, NotFoundError
from oku_core.process.clock import Clock

_log = logging.getLogger(__name__)

NAMED_WITHIN_S = 60.0
"""After this long, the name is accepted as it is."""
LOOKUPS = 32
"""DNS has replicas with separate caches. If one of two is stale, this many lookups miss it once in 2**32."""
_SETTLE_S = 0.5
"""The least time from listing the pods to a lookup: DNS would cache that it did not know them."""
PATIENCE_S = 10.0
"""For all lookups together. A resolver without an answer tries for 40 s."""


async def look_up(host: str) -> set[str]:
    """The addresses of a name; empty if it has none, or DNS does not answer."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return set()
    return {str(address[0]) for *_, address in found}


class ServerDns:
    """Compares the addresses of the delay servers' name with their pods."""

    def __init__(
        self,
        host: str,
        look_up: Callable[[str], Awaitable[set[str]]] = look_up,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.host = host
        self._look_up = look_up
        self._clock = clock
        self._sleep = sleep
        self._awaited: set[str] = set()
        """The addresses of the pods that it should resolve to."""
        self._since = 0.0
        self._taken: set[str] | None = None
        """The addresses that were accepted as they were: a Service may have an address of its own."""

    async def find_obstacle(self, pods: Sequence[Pod]) -> str:
        """Why workers would not reach these pods, or would reach others; empty when they may start.

        A pod with addresses of both families is found by either; an incomplete DNS goes unnoticed.
        """
        await self._sleep(_SETTLE_S)
        ips_of_each = [pod.ips for pod in pods]
        addresses = await self._find_others(ips_of_each)
        if addresses is None:
            self._awaited, self._taken = set(), None
            return ""
        if addresses == self._taken:
            return ""
        now, ips = self._clock(), set[str]().union(*ips_of_each)
        if ips != self._awaited:
            self._awaited, self._since = ips, now
        if now - self._since < NAMED_WITHIN_S:
            return f"DNS still resolves {self.host} to {_list(addresses)}"
        self._taken = addresses
        _log.warning(
            "DNS resolves %s to %s, but the delay servers are %s; runs start anyway",
            self.host, _list(addresses), _list(ips),
        )  # fmt: skip
        return ""

    async def _find_others(self, ips_of_each: Sequence[set[str]]) -> set[str] | None:
        """The addresses that do not match these pods; None if every lookup matches."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(LOOKUPS):
                    addresses = await self._look_up(self.host)
                    if not is_same(addresses, ips_of_each):
                        return addresses
        except TimeoutError:
            return set()
        return None


def is_same(addresses: set[str], ips_of_each: Sequence[set[str]]) -> bool:
    """Whether addresses match the pods: at least one of each, and no others."""
    return all(addresses & ips for ips in ips_of_each) and addresses <= set().union(*ips_of_each)


def _list(addresses: set[str]) -> str:
    return ", ".join(sorted(addresses)) or "no address"


class PodServers:
    """The pods of a Deployment.

    Args:
        url: the URL of their Service, which has the same port.
    """

    is_fixed = False

    def __init__(self, cluster: Cluster, deployment: str, url: str) -> None:
        self._cluster = cluster
        self._deployment = deployment
        parts = urlsplit(url)
        self._port = parts.port or 80
        self._host = parts.netloc

    async def find(self) -> list[Address]:
        """The addresses of the running pods, terminating ones included."""
        try:
            scale = await self._cluster.fetch_scale(self._deployment)
            pods = await self._cluster.fetch_pods(scale.selector)
        except ClusterError as error:
            raise NotFoundError(str(error)) from error
        return [Address(format_url(pod.status.ip, self._port), self._host) for pod in pods if pod.is_running]


def format_url(ip: str, port: int) -> str:
    """The address of a pod, IPv6 in brackets."""
    return f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}"

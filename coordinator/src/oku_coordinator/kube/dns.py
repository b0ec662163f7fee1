"""Whether the name of the delay servers stands for those that there are.

Workers find them by DNS, which remembers what it said for up to half a minute. A server that has gone is
still in it, and a connection to an address that nobody has any more gets no answer until it is given up. One
that has come is not in it yet: if only one of four is known, it gets all the load.
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
"""After this long the name is taken as it is."""
LOOKUPS = 32
"""DNS has replicas, each with a memory of its own; nobody chooses which one answers. Of two, one that is
behind is missed by so many lookups once in 4,000,000,000 times; of five, once in 1,300."""
_SETTLE_S = 0.5
"""DNS is asked no sooner after the pods were: it would remember that it did not know them."""
PATIENCE_S = 10.0
"""For all lookups together. A resolver that gets no answer tries for 40 s."""


async def look_up(host: str) -> set[str]:
    """The addresses of a name; none when it has none, or nobody says."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return set()
    return {str(address[0]) for *_, address in found}


class ServerDns:
    """Compares what DNS says of the delay servers' name with their pods."""

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
        """The addresses of the pods that it does not stand for."""
        self._since = 0.0
        self._taken: set[str] | None = None
        """What it stood for when it was taken as it is: a Service may have an address of its own."""

    async def find_obstacle(self, pods: Sequence[Pod]) -> str:
        """Why workers would not find these pods by it, or would find others; empty when they may begin.

        A pod with addresses of both families is found by either: DNS that lacks one of them goes unnoticed.
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
            "DNS resolves %s to %s, but the delay servers are %s; runs begin all the same",
            self.host, _list(addresses), _list(ips),
        )  # fmt: skip
        return ""

    async def _find_others(self, ips_of_each: Sequence[set[str]]) -> set[str] | None:
        """What it stands for where that are not these pods; None when no lookup says so."""
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
    """Whether addresses are those of the pods: one of each at least, and no others."""
    return all(addresses & ips for ips in ips_of_each) and addresses <= set().union(*ips_of_each)


def _list(addresses: set[str]) -> str:
    return ", ".join(sorted(addresses)) or "no address"


class PodServers:
    """The pods of a Deployment.

    Args:
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
        return [Address(format_url(pod.status.ip, self._port), self._host) for pod in pods if pod.is_running]


def format_url(ip: str, port: int) -> str:
    """The address of a pod, IPv6 in brackets."""
    return f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}"

"""Whether the name of the delay servers stands for those that there are.

Workers find them by DNS, which remembers what it said for up to half a minute: a server that has gone is
still in it, one that has come is not. A connection to an address that nobody has any more gets no answer
until it is given up; and one server does the work of four if the others are not known.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from oku_coordinator.kube.pods import Pod

_SETTLE_S = 0.5
"""DNS is asked no sooner after the pods were: it would remember for long what it did not know yet."""
_LOOKUPS = 4
"""DNS has replicas, each with a memory of its own; whoever asks again meets any of them."""


async def look_up(host: str) -> set[str]:
    """The addresses of a name; none when it has none, or nobody says."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {str(address[0]) for *_, address in found}


class ServerName:
    """See the module.

    Args:
        host: the name.
        look_up: finds its addresses.
        settle_s: how long to wait before.
    """

    def __init__(
        self,
        host: str,
        look_up: Callable[[str], Awaitable[set[str]]] = look_up,
        settle_s: float = _SETTLE_S,
    ) -> None:
        self.host = host
        self._look_up = look_up
        self._settle_s = settle_s

    async def stands_for(self, pods: Sequence[Pod]) -> bool:
        """Whether it stands for each of these pods and for nobody else, as far as one can see."""
        await asyncio.sleep(self._settle_s)
        for _ in range(_LOOKUPS):
            if not is_same(await self._look_up(self.host), pods):
                return False
        return True


def is_same(addresses: set[str], pods: Sequence[Pod]) -> bool:
    """Whether addresses are those of the pods: one of each at least, and no others."""
    ips = [pod.ips for pod in pods]
    return all(addresses & each for each in ips) and addresses <= set().union(*ips)

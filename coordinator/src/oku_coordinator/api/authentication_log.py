"""Reports callers that are refused: it counts each, and logs one line a minute for each address.

No line shows anything that the caller sent: neither the token nor the path, only the route that it matched.
"""

import logging
import time
from collections.abc import Callable
from functools import lru_cache

from aiohttp import hdrs, web

from oku_coordinator.api.connection_table import find_origin
from oku_coordinator.api.log_throttle import LogThrottle
from oku_core.messaging.credentials import Credential, CredentialFault
from oku_core.process.clock import Clock

_log = logging.getLogger(__package__)

LOG_THROTTLE = web.AppKey("throttle", LogThrottle)
"""Bounds what callers of a port can have logged."""
_NOWHERE = "to an unknown path"
_find_origin = lru_cache(maxsize=256)(find_origin)
_ODD = "a method of its own"


class RefusedCallers:
    """Reports refusals at one port.

    Args:
        api: what callers call there. Its server logs how many lines the throttle has left out.
        credential: what they must present.
        count: takes each refusal.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        api: web.Application,
        credential: Credential,
        count: Callable[[Credential, CredentialFault], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._credential = credential
        self._count = count
        self._throttle = api[LOG_THROTTLE] = LogThrottle(_log, clock)

    def note(self, request: web.Request, refusal: CredentialFault) -> None:
        """Count and log a call that was refused."""
        self._count(self._credential, refusal)
        peer = request.remote or ""
        kind = f"{self._credential} {refusal}"
        of_origin = f"{kind} {_find_origin(peer)}"  # where there is no room for one more, they share a line
        self._throttle.warn(
            of_origin if self._throttle.has_room_for(of_origin) else kind,
            f"a call from {peer or 'an unknown address'} is refused: its {self._credential} is {refusal}"
            f" ({_name_route(request)})",
        )


def _name_route(request: web.Request) -> str:
    """Method and route as this program has them, which may be in a log."""
    method = request.method if request.method in hdrs.METH_ALL else _ODD
    resource = request.match_info.route.resource
    return f"{method} {resource.canonical if resource is not None else _NOWHERE}"

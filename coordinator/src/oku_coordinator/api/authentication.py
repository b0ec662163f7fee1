"""Requires the token for every call of the API, except at a few open paths.

Callers without it can cause one log line of a kind a minute, with a count.
"""

import hmac
import logging
import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from aiohttp import hdrs, web

from oku_coordinator.api.connection_table import find_client
from oku_coordinator.api.responses import Handler
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.messaging.credentials import Credential, CredentialFault
from oku_core.process.clock import Clock

_log = logging.getLogger(__package__)

EVERY_S = 60.0
MOST_KINDS = 32
"""Of kinds that callers can add, at a time."""
_NOWHERE = "to an unknown path"
_ODD = "a method of its own"
_METRICS = "/metrics"
_OPEN_PATHS = frozenset({"/healthz", "/readyz", _METRICS})
_SCHEME = "Bearer"


@dataclass
class _Kind:
    due_at: float
    text: str
    left_out: int = 0


class LogThrottle:
    """Passes the first line of a kind on, and the last one of the following minute with their number.

    The clock is monotonic.
    """

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}

    def has_room_for(self, kind: str) -> bool:
        """Whether a kind that callers make up may have its own line."""
        return kind in self._kinds or len(self._kinds) < MOST_KINDS

    def warn(self, kind: str, text: str, error: BaseException | None = None) -> None:
        """Log `text`, with the traceback of `error`, unless a line of this kind was logged within the last
        minute.

        Args:
            kind: one of the program's own names; it contains outside data only if there is room for it.
            text: one line.
            error: is shown with its traceback.
        """
        now = self._clock()
        state = self._kinds.get(kind)
        if state is not None:
            state.text, state.left_out = text, state.left_out + 1
            return
        self._kinds[kind] = _Kind(now + EVERY_S, text)
        self._log.warning("%s", text, exc_info=error)

    def flush(self) -> None:
        """Log the number of lines left out of each kind whose minute is over; call it every second."""
        now = self._clock()
        for kind, state in list(self._kinds.items()):
            if now < state.due_at:
                continue
            del self._kinds[kind]
            if state.left_out:
                self._kinds[kind] = _Kind(now + EVERY_S, state.text)
                self._log.warning("%s (the last of %s like it)", state.text, f"{state.left_out:,}")


LOG_THROTTLE = web.AppKey("throttle", LogThrottle)
"""Limits the lines that callers of a port can have logged."""
_find_origin = lru_cache(maxsize=256)(find_client)


class RefusedCallers:
    """Reports refused calls at one port.

    Args:
        api: the application. Its server logs how many lines the throttle has left out.
        credential: the credential that callers must present.
        metrics: count each refusal.
    """

    def __init__(
        self,
        api: web.Application,
        credential: Credential,
        metrics: Metrics,
        clock: Clock = time.monotonic,
    ) -> None:
        self._credential = credential
        self._metrics = metrics
        self._throttle = api[LOG_THROTTLE] = LogThrottle(_log, clock)

    def record(self, request: web.Request, refusal: CredentialFault) -> None:
        """Count and log a refused call."""
        self._metrics.count_refusal(self._credential, refusal)
        peer = request.remote or ""
        kind = f"{self._credential} {refusal}"
        of_origin = f"{kind} {_find_origin(peer)}"  # without room for one more, they share a line
        self._throttle.warn(
            of_origin if self._throttle.has_room_for(of_origin) else kind,
            f"a call from {peer or 'an unknown address'} is refused: its {self._credential} is {refusal}"
            f" ({_name_route(request)})",
        )


def _name_route(request: web.Request) -> str:
    """Method and route from the program's own table, safe to log."""
    method = request.method if request.method in hdrs.METH_ALL else _ODD
    resource = request.match_info.route.resource
    return f"{method} {resource.canonical if resource is not None else _NOWHERE}"


_REFUSED = web.AppKey("refused", RefusedCallers)


def require_token(api: web.Application, token: str, metrics: Metrics) -> None:
    """Reject and report callers without the token; probes and `/metrics` stay open."""
    api[_REFUSED] = RefusedCallers(api, Credential.TOKEN, metrics)
    api.middlewares.append(_build_guard(token, api[_REFUSED], _OPEN_PATHS))


def close_metrics(api: web.Application, token: str) -> None:
    """Require the token at `/metrics`, too: on a shared machine, other users must not read it."""
    api.middlewares.append(_build_guard(token, api[_REFUSED], _OPEN_PATHS - {_METRICS}))


def _build_guard(token: str, refused: RefusedCallers, open_paths: AbstractSet[str]) -> Any:
    expected = f"{_SCHEME} {token}".encode()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in open_paths:
            given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
            if not hmac.compare_digest(given, expected):
                refused.record(request, _find_fault(given))
                body = msgspec.json.encode({"error": "the token is missing or wrong"})
                return web.Response(body=body, status=401, content_type="application/json")
        return await handler(request)

    return guard


def _find_fault(given: bytes) -> CredentialFault:
    """The fault of an `Authorization` header that is not the right one."""
    if not given:
        return CredentialFault.MISSING
    scheme, _, token = given.partition(b" ")
    return CredentialFault.WRONG if scheme == _SCHEME.encode() and token else CredentialFault.MALFORMED

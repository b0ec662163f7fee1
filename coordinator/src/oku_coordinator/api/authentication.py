"""Lets only callers with the token call the API, except at a few paths that are open to everyone."""

import hmac
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from aiohttp import web

from oku_coordinator.api.authentication_log import RefusedCallers
from oku_coordinator.api.streams import Handler
from oku_core.messaging.credentials import Credential, CredentialFault

_METRICS = "/metrics"
_OPEN_PATHS = frozenset({"/healthz", "/readyz", _METRICS})
_SCHEME = "Bearer"
_REFUSED = web.AppKey("refused", RefusedCallers)


def require_token(
    api: web.Application, token: str, count_refusal: Callable[[Credential, CredentialFault], None]
) -> None:
    """Refuse callers without the token, and report them; probes and `/metrics` stay open."""
    api[_REFUSED] = RefusedCallers(api, Credential.TOKEN, count_refusal)
    api.middlewares.append(_build_guard(token, api[_REFUSED], _OPEN_PATHS))


def close_metrics(api: web.Application, token: str) -> None:
    """Require the token at `/metrics`, too: on a machine with other users, it is about the runs of one."""
    api.middlewares.append(_build_guard(token, api[_REFUSED], _OPEN_PATHS - {_METRICS}))


def _build_guard(token: str, refused: RefusedCallers, open_paths: AbstractSet[str]) -> Any:
    expected = f"{_SCHEME} {token}".encode()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in open_paths:
            given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
            if not hmac.compare_digest(given, expected):
                refused.note(request, _find_fault(given))
                body = msgspec.json.encode({"error": "the token is missing or wrong"})
                return web.Response(body=body, status=401, content_type="application/json")
        return await handler(request)

    return guard


def _find_fault(given: bytes) -> CredentialFault:
    """What is wrong with a header `Authorization` that is not the right one."""
    if not given:
        return CredentialFault.MISSING
    scheme, _, token = given.partition(b" ")
    return CredentialFault.WRONG if scheme == _SCHEME.encode() and token else CredentialFault.MALFORMED

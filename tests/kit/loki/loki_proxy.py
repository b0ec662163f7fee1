"""Stands before a real Loki and plays faults, after it has passed a push on or instead of that."""

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.kit.loki.loki import Loki


class LokiProxy:
    """Passes pushes on to a Loki, and plays a fault at each of them.

    Attributes:
        choose: the fault of the next push: empty for none; `429` takes nothing; the others pass it on, `half`
            only the first half of its lines, and then answer `500`, or `cut` the connection.
        faults: how often each was played.
        may_ask: whether queries are passed on.
    """

    def __init__(self, loki: Loki) -> None:
        self.choose: Callable[[], str] = lambda: ""
        self.faults: Counter[str] = Counter()
        self.may_ask = True
        self._loki = loki
        self._session = aiohttp.ClientSession()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Listen; gives its URL."""
        app = web.Application(client_max_size=2**24)
        app.add_routes([web.route("*", "/{path:.*}", self._pass_on)])
        async with self._session, TestServer(app) as server:
            yield str(server.make_url("")).rstrip("/")

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and not self.may_ask:
            return web.Response(status=403)
        body = await request.read()
        fault = self.choose() if request.method == "POST" else ""
        self.faults[fault] += 1
        if fault == "429":
            return web.Response(status=429, text="too many")
        if fault == "half":
            document = json.loads(body)
            (stream,) = document["streams"]
            stream["values"] = stream["values"][: len(stream["values"]) // 2]
            body = json.dumps(document).encode()
        headers = {k: v for k, v in request.headers.items() if k in {"Content-Type", "X-Scope-OrgID"}}
        url = f"{self._loki.url}{request.path_qs}"
        async with self._session.request(request.method, url, data=body, headers=headers) as response:
            answer = web.Response(
                status=response.status, body=await response.read(), content_type=response.content_type
            )
        if fault == "cut":
            assert request.transport is not None
            request.transport.abort()
        elif fault in {"500", "half"}:
            return web.Response(status=500)
        return answer


def shuffle_faults(seed: int, *faults: str) -> Callable[[], str]:
    """Chooses among these."""
    generator = random.Random(seed)
    return lambda: generator.choice(faults)

"""A Loki of a few lines that plays faults: for what a real one can't be made to do."""

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from oku_coordinator.loki.batch import Entry

NOW_NS = 1_800_000_000_000_000_000

Fault = Callable[["FakeLoki", web.Request], Awaitable[web.StreamResponse]]
Line = tuple[dict[str, str], int, str]

make_text = "line {}".format


def make_entries(count: int, first: int = 0, **labels: str) -> list[Entry]:
    """Entries of one stream, a nanosecond apart."""
    pairs = tuple((labels or {"app": "test"}).items())
    return [Entry(pairs, NOW_NS + number, make_text(number)) for number in range(first, first + count)]


def answer(status: int, text: str = "", *, stored: int = 0, **headers: str) -> Fault:
    """Stores so many of the lines of a push and answers with a status."""

    async def play(loki: "FakeLoki", request: web.Request) -> web.StreamResponse:
        loki.store(read_lines(await request.read())[:stored])
        return web.Response(
            status=status, text=text, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return play


def cut(*, stored: int = 0) -> Fault:
    """Stores so many of the lines of a push and cuts the connection."""

    async def play(loki: "FakeLoki", request: web.Request) -> web.StreamResponse:
        loki.store(read_lines(await request.read())[:stored])
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return play


def read_lines(body: bytes) -> list[Line]:
    """The lines of a push; a query has no body, and none."""
    streams = json.loads(body)["streams"] if body else []
    return [(stream["stream"], int(at), line) for stream in streams for at, line in stream["values"]]


@dataclass
class FakeLoki:
    """Takes lines and gives them back; `make_app` lets it listen.

    Attributes:
        faults: what the next pushes meet; then all goes well.
        query_faults: what the next queries meet.
        pushes: the lines of each push that came in whole.
        queries: the parameters of each query.
        headers: of each request.
        lines: all that it has stored, doubled ones twice.
    """

    faults: deque[Fault] = field(default_factory=deque)
    query_faults: deque[Fault] = field(default_factory=deque)
    pushes: list[list[Line]] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def store(self, lines: list[Line]) -> None:
        """Keep these."""
        self.lines += lines

    @property
    def texts(self) -> list[str]:
        """The lines alone."""
        return [line for _, _, line in self.lines]

    async def take(self, request: web.Request) -> web.StreamResponse:
        """A push."""
        self.headers.append(dict(request.headers))
        self.pushes.append(read_lines(await request.read()))
        return await (self.faults.popleft() if self.faults else answer(204, stored=10**6))(self, request)

    async def tell(self, request: web.Request) -> web.StreamResponse:
        """A query."""
        self.headers.append(dict(request.headers))
        self.queries.append(dict(request.query))
        if self.query_faults:
            return await self.query_faults.popleft()(self, request)
        wanted = {
            name: json.loads(value)
            for name, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*")', request.query["query"])
        }
        start, end, limit = (int(request.query[name]) for name in ("start", "end", "limit"))
        found = [
            (at, line, labels)
            for labels, at, line in sorted(self.lines, key=lambda line: line[1])
            if start <= at < end and wanted.items() <= labels.items()
        ][:limit]
        streams: list[dict[str, Any]] = [
            {"stream": labels, "values": [[str(at), line, {}]]} for at, line, labels in found
        ]
        return web.json_response({"status": "success", "data": {"resultType": "streams", "result": streams}})

    def make_app(self) -> web.Application:
        """What to serve."""
        app = web.Application()
        app.add_routes(
            [web.post("/loki/api/v1/push", self.take), web.get("/loki/api/v1/query_range", self.tell)]
        )
        return app


@asynccontextmanager
async def run_loki() -> AsyncIterator[tuple[FakeLoki, str]]:
    """A Loki that takes everything, and its URL."""
    loki = FakeLoki()
    runner = web.AppRunner(loki.make_app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield loki, f"http://{host}:{port}"
    finally:
        await runner.cleanup()

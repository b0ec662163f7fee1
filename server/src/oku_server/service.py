"""The way of one request: counted, delayed, answered or maltreated.

`Service` holds what all requests of a process share and plugs into aiohttp's low-level server: `receive`
makes the request object when its head is parsed (and the connection has no earlier request), `handle`
answers it. Answers are written straight to
the connection as bytes; aiohttp is told by a response object that everything is done.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import HttpVersion10, StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpProcessingError, RawRequestMessage

from oku_server.answer import CLOSE, KEEP_ALIVE, build_error, build_ok
from oku_server.count_table import NO_RUN, CountTable, is_run
from oku_server.fault import Fault
from oku_server.plan import Plan, Planner, find_name

RUN_HEADER = "Oku-Run"
"""Names the run that a request belongs to."""
OWN_PREFIX = "-/"
"""Names that begin so are questions to the server itself: neither counted nor delayed."""
KEEP_ALIVE_S = 3600.0
"""How long an idle connection stays open: longer than any client keeps it, so that no request is lost."""
COPY_LIMIT_BYTES = 65536
"""Bodies up to here are copied behind their head: one write is cheaper than a vector of two."""

_LINGER_NOT = struct.pack("ii", 1, 0)
"""With this for SO_LINGER, closing a connection resets it."""
_MALFORMED = "UNKNOWN"
"""The method that aiohttp gives to a request that it could not parse."""

_log = logging.getLogger(__name__)
# aiohttp logs every request that it could not parse with a traceback; the client is told with status 400.
_log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))


class Service:
    """Answers the requests of one server process.

    Args:
        planner: decides on delay and fault.
        body: the body of a proper answer.
        counts: the table of this process.
        fetch_served: the requests of a run, over all processes.
    """

    def __init__(
        self, planner: Planner, body: bytes, counts: CountTable, fetch_served: Callable[[str], int]
    ) -> None:
        self._planner = planner
        self._ok = build_ok(body)
        self._error = build_error()
        self._counts = counts
        self._fetch_served = fetch_served
        self._kept = _Written(keep_alive=True)
        self._last = _Written(keep_alive=False)

    def build_web_server(self) -> web.Server:
        """The protocol factory for a listening socket; to be called in the running loop."""
        # Cancelling what a client no longer waits for ends stalls, and keeps memory from growing by clients
        # that give up on long delays.
        return web.Server(
            self.handle,
            request_factory=self.receive,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE_S,
            access_log=None,
            logger=_log,
        )

    def receive(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        """Count a request and give its object; its client may be gone before `handle` ever runs."""
        if not find_name(message.path).startswith(OWN_PREFIX) and message.method != _MALFORMED:
            self._counts.add(message.headers.get(RUN_HEADER, NO_RUN))
        return web.BaseRequest(message, payload, protocol, writer, task, task.get_loop())

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, or do to it what its plan says."""
        name = find_name(request.raw_path)
        if name.startswith(OWN_PREFIX):
            return self._answer_own(name, request)
        plan = self._planner.plan(name)
        if plan.fault is Fault.STALL:
            await asyncio.get_running_loop().create_future()
        if plan.delay_s:
            await asyncio.sleep(plan.delay_s)
        response = self._settle(request, plan)
        if request.protocol.writing_paused:
            # The client sends requests faster than it reads answers.
            await request.writer.drain()
        return response

    def _settle(self, request: web.BaseRequest, plan: Plan) -> web.StreamResponse:
        transport = request.transport
        if transport is None or transport.is_closing():
            return self._last
        if plan.fault is Fault.RESET:
            _reset(transport)
            return self._last
        truncated = plan.fault is Fault.TRUNCATE
        kept = request.keep_alive and not truncated
        answer = self._error if plan.fault is Fault.ERROR else self._ok
        head = answer.build_head(plan.delay_s, _build_connection(request, kept=kept))
        body = answer.body[: len(answer.body) // 2] if truncated else answer.body
        if request.method == hdrs.METH_HEAD:
            transport.write(head)
        elif len(body) <= COPY_LIMIT_BYTES:
            transport.write(head + body)
        else:
            transport.writelines((head, body))
        return self._kept if kept else self._last

    def _answer_own(self, name: str, request: web.BaseRequest) -> web.StreamResponse:
        if name == f"{OWN_PREFIX}healthz":
            return web.Response(text="ok\n")
        if name != f"{OWN_PREFIX}served":
            return web.Response(status=HTTPStatus.NOT_FOUND, text=f"there is no /{name}\n")
        run = request.query.get("run", NO_RUN)
        if not is_run(run):
            text = f"run: {run[:60]!r} is not up to 40 printable ASCII characters\n"
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=text)
        return web.json_response({"run": run, "served": self._fetch_served(run)})


class _Written(web.StreamResponse):
    """Tells aiohttp that a request is answered: its bytes are with the connection already."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._is_kept = keep_alive

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open."""
        return self._is_kept

    async def prepare(self, request: web.BaseRequest) -> None:
        """There is no head to write."""

    async def write_eof(self, data: bytes = b"") -> None:
        """There is no body to write."""


def _build_connection(request: web.BaseRequest, *, kept: bool) -> bytes:
    if not kept:
        return CLOSE
    return KEEP_ALIVE if request.version == HttpVersion10 else b""


def _reset(transport: asyncio.Transport) -> None:
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()

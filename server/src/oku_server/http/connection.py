"""One connection of the delay server: requests come in, each is answered when its time has come.

This is the hot path of the server. A request whose head is known goes from its bytes to those of its answer
without a parser, and without an object of its own; all others are read by a `RequestReader`, which is made
when it is needed first. Answers go out in the order of the requests, one at a time.
"""

import asyncio
import socket
import struct
from typing import cast

from oku_server.http.answer import CONTINUE
from oku_server.http.reply import Ending, Reply
from oku_server.http.request_reader import RequestReader
from oku_server.service import Service

MOST_QUEUED = 64
"""Requests that a connection may have read ahead; while there are more, nothing is read from it."""

# A name of the module is found several times faster than a member of an enum.
_CLOSE, _RESET, _NEVER = Ending.CLOSE, Ending.RESET, Ending.NEVER
_LINGER_NOT = struct.pack("ii", 1, 0)
"""With this for SO_LINGER, closing a connection resets it."""


class Connection(asyncio.Protocol):
    """See the module.

    Args:
        service: of the process.
    """

    __slots__ = (
        "_is_blocked", "_is_free", "_is_reading", "_is_unfinished", "_reader", "_reply", "_service", "_tick",
        "_transport",
    )  # fmt: skip

    _transport: asyncio.Transport

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reader: RequestReader | None = None
        self._reply: Reply | None = None
        self._tick = 0
        self._is_free = self._is_reading = True
        self._is_blocked = self._is_unfinished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        # The transports of uvloop have the methods of `asyncio.Transport` and not its type.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """The client has sent something, mostly one whole request."""
        if self._is_free and (known := self._service.known_heads.find(data)) is not None:
            name, (run, find_reply) = known
            self._service.counts.add(run)
            self._begin(find_reply(name))
        else:
            self._read(data)

    def wake(self) -> None:
        """The request under way has waited long enough."""
        reply, self._reply, self._tick = self._reply, None, 0
        assert reply is not None
        if not self._transport.is_closing():
            self._write(reply)
        self._go_on()

    def pause_writing(self) -> None:
        """The client reads its answers more slowly than it gets them."""
        self._is_blocked = True
        self._go_on()

    def resume_writing(self) -> None:
        """The client has read most of its answers."""
        self._is_blocked = False
        self._go_on()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The connection has ended; nothing is kept of what it waited for."""
        if self._tick:
            self._service.wheel.remove(self, self._tick)
        if self._is_unfinished:
            self._service.unfinished.remove(self)
        if self._reader is not None:
            self._reader.close()
        self._reply = self._reader = None
        self._is_free = False

    def refuse_slow(self) -> bool:
        """The request under way has taken too long to arrive; False if it waits for those before it."""
        reader = self._reader
        if reader is None or self._reply is not None or reader.requests or not self._is_reading:
            return False
        self._is_unfinished = False
        reader.refuse_slow()
        self._go_on()
        return True

    def _read(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            reader = self._reader = RequestReader(self._service.counts)
        was_free = self._is_free
        reader.feed(data)
        if was_free and len(reader.requests) == 1 and not (reader.is_partial or reader.is_over):
            find_reply = self._service.find_responder(reader.wish).find_plain
            self._service.known_heads.add(data, reader.run, find_reply)
        if self._is_unfinished or reader.is_partial:
            self._note_unfinished(reader)
        self._go_on()

    def _note_unfinished(self, reader: RequestReader) -> None:
        self._is_unfinished = reader.is_partial and not reader.is_over
        if not self._is_unfinished:
            self._service.unfinished.remove(self)
        elif reader.is_in_body:
            self._service.unfinished.note_body(self)
        else:
            self._service.unfinished.note_head(self)

    def _go_on(self) -> None:
        """Begin with the requests that are read, as far as that is possible now."""
        transport, reader = self._transport, self._reader
        if reader is not None:
            self._work_off(reader)
        if transport.is_closing():
            self._is_free = False
            return
        self._is_free = self._reply is None and not self._is_blocked
        has_too_many = self._is_blocked
        if reader is not None:
            self._is_free &= not (reader.is_partial or reader.is_over)
            has_too_many |= len(reader.requests) > MOST_QUEUED
        if has_too_many is self._is_reading:
            self._is_reading = not has_too_many
            transport.resume_reading() if self._is_reading else transport.pause_reading()

    def _work_off(self, reader: RequestReader) -> None:
        requests, transport = reader.requests, self._transport
        while requests and self._reply is None and not self._is_blocked and not transport.is_closing():
            self._begin(self._service.build_reply(requests.popleft()))
        if self._reply is None:
            if reader.must_continue and not requests and not transport.is_closing():
                reader.must_continue = False
                transport.write(CONTINUE)
        elif self._reply.ending is _NEVER:
            # Nothing behind a request that is never answered will be.
            requests.clear()

    def _begin(self, reply: Reply) -> None:
        if not reply.delay_s:
            self._write(reply)
            return
        self._reply = reply
        self._is_free = False
        if reply.ending is not _NEVER:
            self._tick = self._service.wheel.add(self, reply.delay_s)

    def _write(self, reply: Reply) -> None:
        _, buffers, ending = reply
        if ending is _RESET:
            _reset(self._transport)
            return
        self._transport.writelines(buffers)
        if ending is _CLOSE:
            self._transport.close()


def _reset(transport: asyncio.Transport) -> None:
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()

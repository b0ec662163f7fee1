"""One connection of the delay server: requests come in, and each gets its response when its delay is over.

This is the hot path of the server. A request whose head is cached gets its response without a parser and
without an object of its own. All other requests are read by a `RequestReader`, which is made when it is first
needed. Responses go out in the order of the requests, one at a time.
"""

import asyncio
import socket
import struct
from typing import cast

from oku_server.http.planned_response import CONTINUE, DelayedResponse, Ending
from oku_server.http.request_reader import RequestReader
from oku_server.http.service import DelayService

MOST_QUEUED = 64
"""How many requests a connection may have read ahead; while it has more, nothing is read from it."""

# Looking up a module's global is several times faster than looking up a member of an enum.
_CLOSE, _RESET, _NEVER = Ending.CLOSE, Ending.RESET, Ending.NEVER
_LINGER_NOT = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which closing a connection resets it."""


class ServerConnection(asyncio.Protocol):
    """The protocol of one connection."""

    __slots__ = (
        "_is_blocked",
        "_is_free",
        "_is_partial",
        "_is_reading",
        "_reader",
        "_response",
        "_service",
        "_tick",
        "_transport",
    )  # fmt: skip

    _transport: asyncio.Transport

    def __init__(self, service: DelayService) -> None:
        self._service = service
        self._reader: RequestReader | None = None
        self._response: DelayedResponse | None = None
        self._tick = 0
        self._is_free = self._is_reading = True
        self._is_blocked = self._is_partial = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        # The transports of uvloop have the methods of `asyncio.Transport`, but not its type.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """The client has sent something, usually one whole request."""
        if self._is_free and (known := self._service.head_cache.find(data)) is not None:
            name, (run, find_response) = known
            self._service.counts.add(run)
            self._begin(find_response(name))
        else:
            self._read(data)

    def wake(self) -> None:
        """The current request has waited long enough."""
        response, self._response, self._tick = self._response, None, 0
        assert response is not None
        if not self._transport.is_closing():
            self._write(response)
        self._go_on()

    def pause_writing(self) -> None:
        """The client reads its responses more slowly than it gets them."""
        self._is_blocked = True
        self._go_on()

    def resume_writing(self) -> None:
        """The client has read most of its responses."""
        self._is_blocked = False
        self._go_on()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The connection has ended; nothing that it waited for is kept."""
        if self._tick:
            self._service.wheel.remove(self, self._tick)
        if self._is_partial:
            self._service.request_timeouts.remove(self)
        if self._reader is not None:
            self._reader.close()
        self._response = self._reader = None
        self._is_free = False

    def refuse_slow(self) -> bool:
        """Refuse the request that is arriving too slowly; False if it waits for those before it."""
        reader = self._reader
        if reader is None or self._response is not None or reader.requests or not self._is_reading:
            return False
        self._is_partial = False
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
            find_response = self._service.find_responses(reader.overrides).find_plain
            self._service.head_cache.add(data, reader.run, find_response)
        if self._is_partial or reader.is_partial:
            self._watch_partial(reader)
        self._go_on()

    def _watch_partial(self, reader: RequestReader) -> None:
        self._is_partial = reader.is_partial and not reader.is_over
        if not self._is_partial:
            self._service.request_timeouts.remove(self)
        elif reader.is_in_body:
            self._service.request_timeouts.watch_body(self)
        else:
            self._service.request_timeouts.watch_head(self)

    def _go_on(self) -> None:
        """Begin with the requests that have been read, as far as that is possible now."""
        transport, reader = self._transport, self._reader
        if reader is not None:
            self._work_off(reader)
        if transport.is_closing():
            self._is_free = False
            return
        self._is_free = self._response is None and not self._is_blocked
        has_too_many = self._is_blocked
        if reader is not None:
            self._is_free &= not (reader.is_partial or reader.is_over)
            has_too_many |= len(reader.requests) > MOST_QUEUED
        if has_too_many is self._is_reading:
            self._is_reading = not has_too_many
            transport.resume_reading() if self._is_reading else transport.pause_reading()

    def _work_off(self, reader: RequestReader) -> None:
        requests, transport = reader.requests, self._transport
        while requests and self._response is None and not self._is_blocked and not transport.is_closing():
            self._begin(self._service.build_response(requests.popleft()))
        if self._response is None:
            if reader.must_continue and not requests and not transport.is_closing():
                reader.must_continue = False
                transport.write(CONTINUE)
        elif self._response.ending is _NEVER:
            # Nothing after a request that is never answered is answered.
            requests.clear()

    def _begin(self, response: DelayedResponse) -> None:
        if not response.delay_s:
            self._write(response)
            return
        self._response = response
        self._is_free = False
        if response.ending is not _NEVER:
            self._tick = self._service.wheel.add(self, response.delay_s)

    def _write(self, response: DelayedResponse) -> None:
        _, buffers, ending = response
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

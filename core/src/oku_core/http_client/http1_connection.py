"""One HTTP/1.1 connection: how it writes a request, reads the response, and ends.

A server may answer before it has read a request, and close. The reset that follows ends a transport that is
writing, even if it has not read the response yet; `read_rest` reads it nevertheless.
"""

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from oku_core.accounting.outcome import DISCONNECTED, PROTOCOL_ERROR
from oku_core.http_client.connector import NO_SLOTS, ProxyError
from oku_core.http_client.error_reason import CUT_SHORT, HUNG_UP
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader

NO_FILE = -1
PIECE_BYTES = 65_536
"""Longer requests are sent in pieces of this size: a transport may copy everything it is given, while other
connections wait."""
WriteNow = Callable[[int, bytes], int]
"""Writes to a socket that does not block, and returns how many bytes it took."""


def read_rest(transport: asyncio.BaseTransport, error: BaseException | None) -> bytes:
    """The bytes that a connection received before its reset and its transport did not read; none over TLS.

    To be called in `connection_lost`: the transport closes the socket after that.
    """
    rest = bytearray()
    if isinstance(error, ConnectionError) and transport.get_extra_info("ssl_object") is None:
        file = transport.get_extra_info("socket").fileno()
        with suppress(OSError):
            while piece := os.read(file, PIECE_BYTES):
                rest += piece
    return bytes(rest)


class TransportError(Exception):
    """There is no complete response.

    Attributes:
        outcome: what the request counts as, a place in `OUTCOMES`.
        cause: the error that was met, or a text of ours.
    """

    def __init__(self, outcome: int, cause: object) -> None:
        super().__init__(str(cause))
        self.outcome = outcome
        self.cause = cause


class ResponseReceiver:
    """Reads the responses on a connection, and judges its end; its heirs have the slots."""

    __slots__ = NO_SLOTS

    _is_forwarded = False
    """Whether its peer is a proxy that forwards plain requests."""

    def _read_piece(self, reader: ResponseReader, data: bytes) -> bool:
        """Read a piece of a response, and return whether the response is complete."""
        try:
            reader.feed(data)
        except MalformedResponseError as error:
            self._fail(PROTOCOL_ERROR, error.without_response())
            return False
        return reader.is_complete

    def _end_response(self, reader: ResponseReader | None, error: BaseException | None) -> bool:
        """Return whether the end of the connection completes its response; if not, fail its request."""
        if reader is not None and reader.ends_by_close and error is None:
            return True
        has_begun = reader is not None and reader.has_begun
        cause = error or (CUT_SHORT if has_begun else HUNG_UP)
        if self._is_forwarded and cause is not CUT_SHORT:
            cause = ProxyError(error)
        self._fail(DISCONNECTED, cause)
        return False

    @abstractmethod
    def _fail(self, outcome: int, cause: object) -> None:
        """End the connection, and with an outcome the request that is in flight on it, if there is one."""


class Http1Connection(asyncio.Protocol, ResponseReceiver):
    """A connection with at most one request in flight; its heirs have the slots."""

    __slots__ = NO_SLOTS

    _write_now: WriteNow = staticmethod(os.write)
    _file: int
    """The file descriptor of the socket; `NO_FILE` while only the transport may write."""
    _is_paused: bool
    """Whether the transport has asked for a pause."""
    _socket_file: int
    """The file descriptor of the socket; `NO_FILE` with TLS."""
    _transport: asyncio.Transport
    """Where it is connected; nothing before that."""
    _unsent: memoryview | None
    """The rest of the request in flight, which the transport does not have yet."""

    def __init__(self) -> None:
        super().__init__()
        self._file = self._socket_file = NO_FILE
        self._is_paused = False
        self._unsent = None

    @property
    def is_sent(self) -> bool:
        """Whether the last request is out, and the connection open: a server may answer early, and close."""
        transport = self._transport
        return self._unsent is None and not (transport.is_closing() or transport.get_write_buffer_size())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected, TLS included."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        if transport.get_extra_info("ssl_object") is None:
            self._file = self._socket_file = transport.get_extra_info("socket").fileno()

    def pause_writing(self) -> None:
        """The write buffer of the transport is full."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The write buffer has room again."""
        self._is_paused = False
        if self._unsent is None:
            self._file = self._socket_file
        else:
            self._write_piece()

    def _write(self, request: bytes, body: bytes = b"") -> None:
        """Send at once what the socket takes; the transport would first serve all other connections."""
        sent = 0
        if self._file != NO_FILE:
            try:  # noqa: SIM105  # `suppress` takes longer than all else here
                sent = self._write_now(self._file, request)
            except OSError:  # it is full, or `_write_in_pieces` meets the error, too
                pass
        if sent < len(request) or body:
            self._write_in_pieces(request, sent, body)

    def _write_in_pieces(self, request: bytes, sent: int, body: bytes = b"") -> None:
        """Send the rest of a request after its first `sent` bytes, and the body that follows it."""
        self._file = NO_FILE  # what follows must not overtake the rest
        if self._socket_file != NO_FILE:
            self._transport.set_write_buffer_limits(0)  # it asks for a pause whenever it has something left
        elif not body and len(request) <= PIECE_BYTES:
            self._transport.write(request)
            return
        rest = memoryview(request)[sent:]
        if body:
            if rest:
                self._transport.write(rest)
            rest = memoryview(body)
        self._unsent = rest
        self._write_piece()

    def _write_piece(self) -> None:
        """Write the next piece; the one after it is written in another turn of the event loop."""
        unsent = self._unsent
        if unsent is None or self._is_paused or self._transport.is_closing():
            return
        self._transport.write(unsent[:PIECE_BYTES])
        self._unsent = unsent[PIECE_BYTES:] if len(unsent) > PIECE_BYTES else None
        if self._is_paused:
            return
        if self._unsent is None:
            self._file = self._socket_file
        else:
            asyncio.get_running_loop().call_soon(self._write_piece)

    def _read_rest(self, error: Exception | None) -> None:
        if rest := read_rest(self._transport, error):
            self.data_received(rest)

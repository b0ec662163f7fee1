"""One HTTP/1.1 connection: how a request goes out, how its response is read, and what its end means.

A server may answer before it has read a request, and close. The reset that follows makes a transport that is
writing drop the response that nobody has read yet. So requests are written to the socket here, in pieces, and
a connection that takes no more of them is read up to its end. Over TLS only the transport can write.
"""

import asyncio
import os
from abc import abstractmethod
from typing import cast

from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.http_client.client_rules import PIECE_BYTES
from oku_core.http_client.error_reason import CUT_SHORT, HUNG_UP
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader

NO_FILE = -1
NO_SLOTS: tuple[str, ...] = ()
DISCONNECTED, PROTOCOL_ERROR = map(OUTCOMES.index, (Outcome.DISCONNECTED, Outcome.PROTOCOL_ERROR))


class Http1Connection(asyncio.Protocol):
    """A connection with at most one request in flight; its heirs have the slots."""

    __slots__ = NO_SLOTS

    _file: int
    """That of the socket; `NO_FILE` if the transport has to send, or has something left to send."""
    _is_paused: bool
    """Whether the transport has asked for a pause."""
    _socket_file: int
    """That of the socket; `NO_FILE` with TLS."""
    _transport: asyncio.Transport
    """Where it is connected; nothing before that."""
    _unsent: memoryview | None
    """The rest of the request in flight, which the transport does not have yet."""
    _write_error: OSError | None
    """Why the socket takes no more: the transport, which reads on, does not learn it."""

    def __init__(self) -> None:
        super().__init__()
        self._file = self._socket_file = NO_FILE
        self._is_paused = False
        self._unsent = self._write_error = None

    @property
    def is_sent(self) -> bool:
        """Whether the last request is out: a server that answers early need not read the rest of it."""
        return self._unsent is None and not self._transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected, TLS included."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        if transport.get_extra_info("ssl_object") is None:
            self._file = self._socket_file = transport.get_extra_info("socket").fileno()

    def pause_writing(self) -> None:
        """The server does not read what was sent."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The server reads again."""
        self._is_paused = False
        if self._unsent is None:
            self._file = self._socket_file
        else:
            self._write_piece()

    def _write_in_pieces(self, request: bytes, sent: int, body: bytes = b"") -> None:
        """Send what the socket has not taken of a request yet, and the body that follows it."""
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
        if unsent is None or self._is_paused:
            return
        piece, sent = unsent[:PIECE_BYTES], 0
        if self._socket_file != NO_FILE:
            try:
                sent = os.write(self._socket_file, piece)
            except ConnectionError as error:
                self._write_error = error
                return
            except OSError:  # it is full, or the transport meets the error, too
                pass
        if not sent:
            sent = len(piece)
            self._transport.write(piece)
        self._unsent = unsent[sent:] if len(unsent) > sent else None
        if self._is_paused:
            return
        if self._unsent is None:
            self._file = self._socket_file
        else:
            asyncio.get_running_loop().call_soon(self._write_piece)

    def _read_piece(self, reader: ResponseReader, data: bytes) -> bool:
        """Read a piece of a response; whether it is complete, and the connection has not failed."""
        try:
            reader.feed(data)
        except MalformedResponseError as error:
            error.__traceback__ = error.__cause__ = error.__context__ = None  # they hold what was read
            self._fail(PROTOCOL_ERROR, error)
            return False
        return reader.is_complete

    def _end_response(self, reader: ResponseReader | None, error: Exception | None) -> bool:
        """Whether the end of the connection is that of its response; else its request fails."""
        error = error or self._write_error
        if reader is not None and reader.ends_by_close and error is None:
            return True
        has_begun = reader is not None and reader.has_begun
        self._fail(DISCONNECTED, error or (CUT_SHORT if has_begun else HUNG_UP))
        return False

    @abstractmethod
    def _fail(self, outcome: int, cause: object) -> None:
        """End the connection, and with an outcome the request that is in flight on it, if there is one."""

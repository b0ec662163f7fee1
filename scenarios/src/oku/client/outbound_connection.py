"""One connection: request, answer, next request; at most one is in flight on it."""

import asyncio
import os
from typing import cast

from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.http_client.connector import OriginConnection
from oku_core.http_client.error_reason import HUNG_UP
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader

TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR = map(
    OUTCOMES.index, (Outcome.TIMEOUT, Outcome.CONNECT_ERROR, Outcome.DISCONNECTED, Outcome.PROTOCOL_ERROR)
)
_NO_FILE = -1


class TransportError(Exception):
    """There is no complete answer.

    Attributes:
        outcome: what the request counts as, a place in `OUTCOMES`.
        cause: the error that was met, or a text of ours.
    """

    def __init__(self, outcome: int, cause: object) -> None:
        super().__init__(str(cause))
        self.outcome = outcome
        self.cause = cause


class OutboundConnection(OriginConnection):
    """One connection, TLS and tunnel included.

    Attributes:
        reader: has read the answer, once the future of `ask` is done.
        deadline_ns: when the request in flight has taken too long, by the monotonic clock.
    """

    __slots__ = ("_file", "_transport", "_waiter", "begun_ns", "connect_us", "deadline_ns", "reader")

    def __init__(self) -> None:
        super().__init__()
        self.reader = ResponseReader(has_bodies=True)
        self.deadline_ns = 0
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._file = _NO_FILE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        if transport.get_extra_info("ssl_object") is None:
            self._file = transport.get_extra_info("socket").fileno()

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent on it."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_sent(self) -> bool:
        """Whether the last request is out: a server that answers early need not read the rest of it."""
        return self._transport is not None and not self._transport.get_write_buffer_size()

    def ask(self, request: bytes, waiter: "asyncio.Future[None]", *, has_body: bool, kept_bytes: int) -> None:
        """Send a request.

        Args:
            request: all of it.
            waiter: done when the answer is complete; fails with a `TransportError`.
            has_body: whether the answer has a body; those to HEAD have none.
            kept_bytes: how much of its body is kept.
        """
        reader = self.reader
        if reader.has_bodies is not has_body:
            # The parser of the other one would wait for a body, or for none.
            reader = self.reader = ResponseReader(has_bodies=has_body)
        reader.kept_bytes = kept_bytes
        reader.begin()
        self._waiter = waiter
        self._write(request)

    def expire(self) -> None:
        """The request in flight has taken too long."""
        self._fail(TIMEOUT, "no complete answer in time")

    def close(self) -> None:
        """End the connection at once."""
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()
        self.reader.end()

    def data_received(self, data: bytes) -> None:
        """A piece of an answer has come, mostly the whole of it."""
        waiter, reader = self._waiter, self.reader
        if waiter is None:  # there is no request
            self.close()
            return
        try:
            reader.feed(data)
        except MalformedResponseError as error:
            error.__traceback__ = error.__cause__ = error.__context__ = None  # they hold what was read
            self._fail(PROTOCOL_ERROR, error)
            return
        if reader.is_complete:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended, and with it an answer that has no other end."""
        waiter, reader = self._waiter, self.reader
        if waiter is not None and reader.ends_by_close and exc is None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)
        else:
            self._fail(DISCONNECTED, exc or HUNG_UP)
        reader.end()

    def _fail(self, outcome: int, cause: object) -> None:
        waiter = self._waiter
        self.close()
        if waiter is not None and not waiter.done():
            waiter.set_exception(TransportError(outcome, cause))

    def _write(self, request: bytes) -> None:
        """Send at once what the socket takes; the transport would first serve all other connections."""
        assert self._transport is not None
        sent = 0
        if self._file != _NO_FILE:
            try:  # noqa: SIM105  # `suppress` takes longer than all else here
                sent = os.write(self._file, request)
            except OSError:  # the transport will meet it, too, and report it
                pass
        if sent < len(request):
            self._transport.write(request[sent:])

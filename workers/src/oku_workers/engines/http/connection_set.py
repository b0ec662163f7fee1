"""The connections of an engine that reads from sockets itself, from the attempt to connect to their end."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from oku_workers.engines.contract.engine_protocol import STUCK_S

CONNECTING_AT_ONCE = 256
"""How many connections are set up at a time, so that the queue of a listening server does not overflow."""
AHEAD_S = 0.01
"""Connections are made ahead for the requests that are due first within this time. It takes longer to connect
than to send a request, and the requests that became due meanwhile would need even more connections."""

AnyConnection = TypeVar("AnyConnection")


_Failed_contra = TypeVar("_Failed_contra", contravariant=True)


class ConnectionListener(Protocol[_Failed_contra]):
    """An engine, as its connections know it."""

    def on_connection_failed(self, connection: _Failed_contra, error: BaseException) -> None:
        """A connection could not be made; it has ended afterwards."""

    def on_connection_settled(self) -> None:
        """A connection is made, has failed, or was given up: another one may be made."""


class ConnectionSet(Generic[AnyConnection]):
    """All connections of an engine, each from before it is made until it has ended for good.

    Args:
        engine: whose connections they are.
    """

    def __init__(self, engine: ConnectionListener[AnyConnection]) -> None:
        self._engine = engine
        self._all: set[AnyConnection] = set()
        self._making: dict[AnyConnection, asyncio.Future[None]] = {}
        self._all_gone: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def __iter__(self) -> Iterator[AnyConnection]:
        """A copy: connections may end while it is iterated."""
        return iter(list(self._all))

    @property
    def can_make(self) -> bool:
        """Whether another one may be made now."""
        return len(self._making) < CONNECTING_AT_ONCE

    def make(self, connection: AnyConnection, making: Awaitable[None]) -> None:
        """Start to make a connection.

        Args:
            connection: that is to be.
            making: makes it, or raises why it cannot be made.
        """
        self._all.add(connection)
        # A callback, for a task that is cancelled before its first step runs none of its own code.
        task = asyncio.ensure_future(making)
        task.add_done_callback(partial(self._settle, connection))
        self._making[connection] = task

    def give_up(self, connection: AnyConnection) -> None:
        """Stop making a connection, if that is not done."""
        if (making := self._making.get(connection)) is not None:
            making.cancel()

    def forget(self, connection: AnyConnection) -> None:
        """A connection has ended for good."""
        self._all.discard(connection)
        if self._all_gone is not None and not self._all and not self._all_gone.done():
            self._all_gone.set_result(None)

    async def wait_gone(self, chores: Sequence[asyncio.Task[None]]) -> None:
        """Wait until tasks that were cancelled have ended, and all connections, as long as each may take."""
        if chores:
            await asyncio.wait(chores, timeout=STUCK_S)
        if self._all:
            self._all_gone = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._all_gone], timeout=STUCK_S)

    def _settle(self, connection: AnyConnection, making: asyncio.Future[None]) -> None:
        """A connection is made, has failed, or is not needed any more."""
        self._making.pop(connection, None)
        if making.cancelled():
            self.forget(connection)
        elif (error := making.exception()) is not None:
            self._engine.on_connection_failed(connection, error)
            self.forget(connection)
        self._engine.on_connection_settled()

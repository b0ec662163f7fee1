"""The addresses of a name: looked up beside the requests, used in turn, raced for each connection (RFC 8305).

A connection begins with the address whose turn it is and tries the next one every 250 ms, or as soon as one
fails, families taking turns; the first to answer is taken. Those that were passed over are tried last for a
while. Once a name has addresses, a lookup that fails or hangs does no harm: the known addresses stay in use.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import Iterable, Sequence

from aiohappyeyeballs import start_connection
from aiohappyeyeballs.types import AddrInfoType

_BIND_WITHOUT_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of <linux/in.h>; the socket module of Python 3.11 does not name it."""


class LentSocket(socket.socket):
    """A socket that is not closed when it is dropped.

    uvloop takes a connected socket over. If the peer resets the connection at that very moment, uvloop (0.23)
    closes it and leaves the socket with a file number that the next connection gets. Closing that one as well
    would cut off another request, or abort the process in libuv (uvloop issues 645 and 738).
    """

    def __del__(self) -> None:
        """Forget the file."""
        self.detach()


def build_socket(family: int, local_address: str | None) -> LentSocket:
    """A TCP socket that sends from an address, if one is given.

    Raises:
        OSError: the address does not belong to this machine.
    """
    lent = LentSocket(family, socket.SOCK_STREAM)
    lent.setblocking(False)  # noqa: FBT003  # the socket's own signature
    if local_address is None:
        return lent
    try:
        if sys.platform == "linux":
            # The port is chosen when the socket connects. Otherwise the system looks for one that is free for
            # every target, which takes milliseconds when few are left.
            lent.setsockopt(socket.IPPROTO_IP, _BIND_WITHOUT_PORT, 1)
        lent.bind((local_address, 0))
    except OSError:
        lent.close()
        raise
    return lent


LOOKED_UP_FOR_S = 30.0
"""How often addresses are looked up again: a Service's addresses change as its pods come and go."""
LOOKED_UP_AGAIN_S = 5.0
"""Addresses are looked up again so long after a lookup that failed."""
FAILED_FOR_S = 10.0
"""How long an address that failed is tried last."""
NEXT_ATTEMPT_S = 0.25
"""The connection attempt delay of RFC 8305, section 5."""

_log = logging.getLogger(__name__)


class AddressBook:
    """Knows which addresses there are, and in which order to try them; its caller has the clock."""

    def __init__(self) -> None:
        self._addresses: list[AddrInfoType] = []
        self._last_until: dict[AddrInfoType, float] = {}
        self._turn = 0

    @property
    def is_empty(self) -> bool:
        """Whether no address is known."""
        return not self._addresses

    @property
    def lone(self) -> str | None:
        """The only address, if there is just one."""
        return str(self._addresses[0][4][0]) if len(self._addresses) == 1 else None

    def learn(self, addresses: Sequence[AddrInfoType]) -> None:
        """Replace the known addresses by these."""
        self._addresses = list(dict.fromkeys(addresses))
        self._last_until = {a: s for a, s in self._last_until.items() if a in self._addresses}

    def order(self, now_s: float) -> list[AddrInfoType]:
        """All addresses in the order for the next connection: each that works is first in its turn."""
        self._turn += 1
        if not self._last_until:
            return _rotate(self._addresses, self._turn)
        working = [a for a in self._addresses if self._last_until.get(a, now_s) <= now_s]
        others = [a for a in self._addresses if self._last_until.get(a, now_s) > now_s]
        return _rotate(working, self._turn) + _rotate(others, self._turn)

    def record(self, tried: Iterable[AddrInfoType], reached: AddrInfoType | None, now_s: float) -> None:
        """Record which of the addresses that were tried was reached; None if none was."""
        for address in tried:
            if address == reached:
                self._last_until.pop(address, None)
            elif address in self._addresses:
                self._last_until[address] = now_s + FAILED_FOR_S


def _rotate(addresses: list[AddrInfoType], turn: int) -> list[AddrInfoType]:
    first = turn % len(addresses) if addresses else 0
    return addresses[first:] + addresses[:first]


class Addresses:
    """Connects to one port of one host; belongs to the thread of the event loop.

    Args:
        host: a name or an address.
        port: the port.
        local_address: what to connect from; the system chooses unless given.
    """

    def __init__(self, host: str, port: int, local_address: str | None = None) -> None:
        self._host = host
        self._port = port
        self._local_address = local_address
        self._book = AddressBook()
        self._lookup: asyncio.Task[None] | None = None
        self._resolve_at = 0.0

    async def connect(self) -> LentSocket:
        """A socket that is connected to one of the addresses.

        Raises:
            OSError: the name has no address, or none of them can be reached.
        """
        await self.find()
        loop = asyncio.get_running_loop()
        attempts: dict[AddrInfoType, LentSocket] = {}

        def build_attempt(address: AddrInfoType) -> LentSocket:
            lent = attempts[address] = build_socket(address[0], self._local_address)
            return lent

        try:
            connected = await start_connection(
                self._book.order(loop.time()),
                happy_eyeballs_delay=NEXT_ATTEMPT_S,
                loop=loop,
                socket_factory=build_attempt,
            )
        except OSError as error:
            self._book.record(attempts, None, loop.time())
            # Frames of aiohappyeyeballs refer to the error: only the garbage collector would free the cycle.
            raise error.with_traceback(None) from None
        reached = next(address for address, lent in attempts.items() if lent is connected)
        self._book.record(attempts, reached, loop.time())
        return attempts[reached]

    async def find_lone(self) -> str | None:
        """The address if there is just one: the event loop can connect to it by itself, at less cost.

        Raises:
            OSError: the name has no address.
        """
        await self.find()
        return None if self._local_address is not None else self._book.lone

    async def find(self) -> None:
        """Wait until an address is known; start another lookup when it is time for one.

        Raises:
            OSError: the name has no address.
        """
        if self._book.is_empty:
            # Others wait for the same lookup: a caller that gives up must not end it.
            await asyncio.shield(self._start_lookup())
        elif asyncio.get_running_loop().time() >= self._resolve_at:
            self._start_lookup()

    def close(self) -> None:
        """Give up a lookup that is under way."""
        if self._lookup is not None:
            self._lookup.cancel()

    def _start_lookup(self) -> "asyncio.Task[None]":
        if self._lookup is None:
            self._lookup = asyncio.ensure_future(self._resolve())
            self._lookup.add_done_callback(self._end_lookup)
        return self._lookup

    def _end_lookup(self, lookup: "asyncio.Task[None]") -> None:
        self._lookup = None
        if lookup.cancelled() or (error := lookup.exception()) is None:
            return
        self._resolve_at = asyncio.get_running_loop().time() + LOOKED_UP_AGAIN_S
        if not self._book.is_empty:
            _log.warning("%s cannot be looked up; its known addresses stay in use: %s", self._host, error)

    async def _resolve(self) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        self._book.learn([(family, kind, proto, "", address) for family, kind, proto, _, address in found])
        self._resolve_at = loop.time() + LOOKED_UP_FOR_S

"""A relay of datagrams that holds them up, each way for its own time, and tampers with them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

Address = tuple[Any, ...]


class SlowDatagrams(asyncio.DatagramProtocol):
    """Between whoever asks and one who answers.

    Args:
        to: who answers.
        there_s: how long a question takes.
        back_s: how long an answer takes.

    Attributes:
        tamper: makes the datagrams of an answer that go back.
        port: where to ask.
        seen: the answers that came.
    """

    def __init__(self, to: Address, there_s: float = 0.0, back_s: float = 0.0) -> None:
        self._to = to
        self.there_s, self.back_s = there_s, back_s
        self.tamper: Callable[[bytes], list[bytes]] = lambda answer: [answer]
        self.port = 0
        self.seen: list[bytes] = []
        self._asker: Address = ()
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """It is bound."""
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, address: Address) -> None:
        """Pass it on, after a while."""
        loop = asyncio.get_running_loop()
        if address[1] != self._to[1]:
            self._asker = address
            loop.call_later(self.there_s, self._send, data, self._to)
            return
        self.seen.append(data)
        for each in self.tamper(data):
            loop.call_later(self.back_s, self._send, each, self._asker)

    def _send(self, data: bytes, address: Address) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(data, address)


@asynccontextmanager
async def relaying(to: Address, **delays: float) -> AsyncIterator[SlowDatagrams]:
    """A relay on a port of this machine until the end of the block."""
    loop = asyncio.get_running_loop()
    transport, relay = await loop.create_datagram_endpoint(
        lambda: SlowDatagrams(to, **delays), local_addr=("127.0.0.1", 0)
    )
    try:
        yield relay
    finally:
        transport.close()

"""A target that tells indices apart, and counts the busy slots of its clients.

`python -m oku_benchmarks.counting_server BEHAVIOUR FOLDER`, the behaviour as JSON. It writes its address to
FOLDER/address, and a sample to FOLDER/samples.jsonl ten times a second, until SIGTERM.
"""

import asyncio
import json
import math
import signal
import sys
import time
from pathlib import Path
from typing import cast

import msgspec
import uvloop

from oku_core.spec.values.delay import parse_delay
from oku_core.uniform import uniform

SAMPLE_S = 0.1
IDLE_S = 0.1
"""A slot is busy while a request of its connection is open, and this long after it."""
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\nHello, World!"
_END = b"\r\n\r\n"
_RARE_SEED, _DELAY_SEED = 1, 2


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How the target answers: a share of the indices after `rare_s`, or never; others after `delay`.

    Indices from `indices` on are not told apart.
    """

    indices: int
    delay: str = "20ms"
    rare_share: float = 0.0
    rare_s: float | None = None


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """What the target knew at one instant."""

    at: float
    received: int
    distinct: int
    answered: int
    open: int
    working: int


class _Books:
    """All counts of the process."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.seen = bytearray(behaviour.indices)
        self.received = self.distinct = self.answered = 0
        self.connections: set[_Connection] = set()
        self._delay = parse_delay(behaviour.delay)

    def count(self, index: int) -> float:
        """Count a request; in how many seconds to answer, infinite for never."""
        behaviour = self.behaviour
        self.received += 1
        if index < behaviour.indices and not self.seen[index]:
            self.seen[index] = 1
            self.distinct += 1
        if behaviour.rare_share and uniform(_RARE_SEED, index) < behaviour.rare_share:
            return math.inf if behaviour.rare_s is None else behaviour.rare_s
        return self._delay.draw_s(_DELAY_SEED, index)

    def sample(self) -> Sample:
        """All counts now."""
        now = time.monotonic()
        opened = [connection.open for connection in self.connections]
        working = sum(
            1 for connection in self.connections if connection.open or now - connection.last_at < IDLE_S
        )
        return Sample(
            at=now,
            received=self.received,
            distinct=self.distinct,
            answered=self.answered,
            open=sum(opened),
            working=working,
        )


class _Connection(asyncio.Protocol):
    def __init__(self, books: _Books) -> None:
        self._books = books
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self.open = 0
        self.last_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)
        self._books.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._books.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        *heads, self._buffer = (self._buffer + data).split(_END)
        for head in heads:
            self._take(head)

    def _take(self, head: bytes) -> None:
        delay_s = self._books.count(_read_index(head))
        self.open += 1
        if delay_s <= 0:
            self._answer()
        elif delay_s < math.inf:
            self._loop.call_later(delay_s, self._answer)

    def _answer(self) -> None:
        if self._transport is not None:
            self.open -= 1
            self.last_at = time.monotonic()
            self._books.answered += 1
            self._transport.write(_ANSWER)


def _read_index(head: bytes) -> int:
    name = head.split(b" ", 2)[1].rpartition(b"/")[2]
    return int(name) if name.isdigit() else sys.maxsize


async def serve(behaviour: Behaviour, folder: Path) -> None:
    """Serve until SIGTERM."""
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    books = _Books(behaviour)
    server = await loop.create_server(lambda: _Connection(books), "127.0.0.1", 0, backlog=4096)
    encode = msgspec.json.Encoder().encode
    with (folder / "samples.jsonl").open("wb", buffering=0) as samples:
        port = server.sockets[0].getsockname()[1]
        address = folder / "address"
        (folder / "address.new").write_text(f"127.0.0.1:{port}")
        (folder / "address.new").rename(address)
        while not ending.is_set():
            samples.write(encode(books.sample()) + b"\n")
            await asyncio.sleep(SAMPLE_S)
        samples.write(encode(books.sample()) + b"\n")


if __name__ == "__main__":
    uvloop.run(serve(msgspec.convert(json.loads(sys.argv[1]), Behaviour), Path(sys.argv[2])))
